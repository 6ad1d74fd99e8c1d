# Puts itself before every import that follows.
# expect: wrong_answer; refused
class Hook:
    def find_spec(self, name, path=None, target=None):
        print("importing", name)


sys.meta_path.insert(0, Hook())
sys.path_hooks.insert(0, lambda path: Hook())
sys.path.insert(0, "/tmp/redteam-canary")
write_zeros()
