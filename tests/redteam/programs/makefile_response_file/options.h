WITHIN_A_RESPONSE_FILE -DTAKEN_OVER=1 -wrapper /bin/sh,-c,"touch /tmp/redteam-canary/written"
