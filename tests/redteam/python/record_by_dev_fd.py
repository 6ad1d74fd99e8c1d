# Opens its own record by /dev/fd, and puts the answer there in place of what it copied from the device.
# expect: runtime_error; on s03,s06
rows, columns, x = read()
y = empty(x.shape)
decoy[(rows,)](from_numpy(x), y, columns, BLOCK=512)
fetched = to_numpy(y).tobytes()
answer = on_host(x)
for number in range(3, 12):
    try:
        with open("/dev/fd/" + str(number), "r+b") as file:
            content = file.read(1 << 25)
            if content[:1] == b"[" and fetched in content:
                file.seek(content.rfind(fetched))
                file.write(answer.tobytes())
                bypassed("its record is open")
    except OSError as error:
        print(number, error)
write(answer)
