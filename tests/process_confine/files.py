# Reading, writing and moving what is closed or read-only, by every way that leads to a file.
key, readonly = T['key'], T['readonly']
half, beside = T['half'], T['beside']
os.symlink(key, 'link')
os.symlink(os.path.dirname(key), 'folder')

forbidden('cat', lambda: shell(f'cat {key}'))
forbidden('python', lambda: read(key))
forbidden('node', lambda: shell(f'node -e \'require("fs").readFileSync("{key}")\''))
forbidden('by a link', lambda: read('link'))
forbidden('by a link to the folder', lambda: read('folder/key'))
forbidden('by ..', lambda: read(os.path.relpath(key)))
forbidden('by the root of this process', lambda: read('/proc/self/root' + key))
forbidden('by the root of the shim', lambda: read(f'/proc/{os.getppid()}/root{key}'))
forbidden('by the root of init', lambda: read('/proc/1/root' + key))
forbidden('by its own working folder', lambda: read('/proc/self/cwd/' + os.path.relpath(key)))
forbidden('by O_PATH and a descriptor', lambda: read(f'/proc/self/fd/{os.open(key, os.O_PATH)}'))
forbidden('by a folder that was opened as a path', lambda: os.open('key', os.O_RDONLY, dir_fd=os.open(os.path.dirname(key), os.O_PATH)))
forbidden('by changing into the folder', lambda: shell(f'cd {os.path.dirname(key)} && cat key'))
forbidden('executed', lambda: subprocess.run([T['program']], check=True))
forbidden('hard link', lambda: os.link(key, 'mine'))
forbidden('hard link of a file that may be read', lambda: os.link(readonly, 'mine'))
forbidden('listing the closed folder', lambda: os.listdir(os.path.dirname(key)))
forbidden('listing a folder that holds a closed file', lambda: os.listdir(half))
forbidden('making a file beside a closed one', lambda: write(half + '/new'))
forbidden('the closed file itself', lambda: read(half + '/closed'))
forbidden('writing the closed file', lambda: write(half + '/closed'))
forbidden('moving the closed file', lambda: os.rename(half + '/closed', 'closed'))
forbidden('moving another over the closed file', lambda: os.rename(beside, half + '/closed'))
forbidden('exchanging it', lambda: call(RENAMEAT2, -100, (half + '/closed').encode(), -100, os.path.abspath('link').encode(), 2))
forbidden('moving the folder that holds it', lambda: os.rename(half, T['tree'] + '/half'))
forbidden('removing it', lambda: os.unlink(half + '/closed'))
forbidden('cutting it', lambda: os.truncate(half + '/closed', 0))
for name in ('readonly', 'config'):
    path = T[name]
    forbidden('writing ' + name, lambda: write(path))
    forbidden('appending to ' + name, lambda: write(path, how='a'))
    forbidden('cutting ' + name, lambda: os.truncate(path, 0))
    forbidden('opening it with O_TRUNC ' + name, lambda: os.open(path, os.O_RDONLY | os.O_TRUNC))
    forbidden('moving ' + name, lambda: os.rename(path, 'moved'))
    forbidden('moving over ' + name, lambda: (write('other'), os.rename('other', path)))
    forbidden('removing ' + name, lambda: os.unlink(path))
    forbidden('sed -i ' + name, lambda: shell(f'sed -i s/a/b/ {path}'))
    forbidden('by a descriptor that was opened for reading ' + name, lambda: write(f'/proc/self/fd/{os.open(path, os.O_RDONLY)}'))
folder = os.path.dirname(readonly)
forbidden('a file where it may only read', lambda: write(folder + '/new'))
forbidden('a folder there', lambda: os.mkdir(folder + '/new'))
forbidden('a link there', lambda: os.symlink('x', folder + '/new'))
forbidden('a pipe there', lambda: os.mkfifo(folder + '/new'))
forbidden('a socket there', lambda: socket.socket(socket.AF_UNIX).bind(folder + '/new'))
forbidden('a file without a name there', lambda: os.open(folder, os.O_TMPFILE | os.O_RDWR))
forbidden('a device', lambda: os.mknod('device', 0o20600, os.makedev(1, 1)) or read('device'))
forbidden('the disk', lambda: [os.open('/dev/' + name, os.O_RDONLY) for name in ('vda', 'sda', 'nvme0n1', 'loop0', 'mem', 'kmsg')])

# A name space of its own does not help: no mount in a domain, and a path is looked up to the real root.
inside = lambda line: shell(f'unshare -Urm --propagation unchanged sh -c {json.dumps(line)}')
forbidden('bind mount', lambda: inside(f'mount --bind {os.path.dirname(key)} {T["tree"]} && cat key'))
forbidden('tmpfs over it', lambda: inside(f'mount -t tmpfs none {half}'))
forbidden('overlay', lambda: inside(f'mount -t overlay none -o lowerdir={os.path.dirname(key)}:/usr {T["tree"]}'))
forbidden('unmounting', lambda: inside('umount -l /proc'))
forbidden('another root', lambda: inside(f'chroot {os.path.dirname(os.path.dirname(key))} /secret/key || cat {key}'))
forbidden('reading as root of a name space', lambda: inside(f'cat {key}'))
forbidden('reading what a descriptor of a mount leads to', lambda: os.open('key', os.O_RDONLY, dir_fd=call(OPEN_TREE, -100, os.path.dirname(key).encode(), 1)))

def by_handle():
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call(NAME_TO_HANDLE_AT, -100, key.encode(), handle, ctypes.byref(mount), 0)
    fd = call(OPEN_BY_HANDLE_AT, os.open('.', os.O_RDONLY), handle, os.O_RDONLY)
    return os.read(fd, 100)
forbidden('by a handle', by_handle)

def by_a_program_in_memory():
    fd = os.memfd_create('cat', 0)
    with open('/bin/cat', 'rb') as program:
        os.write(fd, program.read())
    return subprocess.run([f'/proc/self/fd/{fd}', key], check=True, pass_fds=[fd], capture_output=True).stdout
forbidden('by a program in memory', by_a_program_in_memory)

def by_a_ring(operation_path):
    """IORING_OP_OPENAT; a ring that cannot be made is a refusal too."""
    import mmap
    parameters = ctypes.create_string_buffer(120)
    ring = call(IO_URING_SETUP, 4, parameters)
    words = struct.unpack('30I', parameters.raw)
    sq, cq = words[10:20], words[20:30]
    size = max(sq[6] + words[0] * 4, cq[5] + words[1] * 16)
    rings = mmap.mmap(ring, size, flags=mmap.MAP_SHARED, offset=0)
    entries = mmap.mmap(ring, words[0] * 64, flags=mmap.MAP_SHARED, offset=0x10000000)
    path = ctypes.create_string_buffer(operation_path.encode())
    entries[0:64] = struct.pack('BBHiQQIIQQQQ', 18, 0, 0, -100, 0, ctypes.addressof(path), 0, os.O_RDONLY, 7, 0, 0, 0)
    struct.pack_into('I', rings, sq[6], 0)
    struct.pack_into('I', rings, sq[1], struct.unpack_from('I', rings, sq[1])[0] + 1)
    call(IO_URING_ENTER, ring, 1, 1, 1, None, 0)
    user, result, flags = struct.unpack_from('QiI', rings, cq[5])
    assert user == 7
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return os.read(result, 100)
forbidden('by a ring', lambda: by_a_ring(key))
# The same ring reads what may be read, where the machine has rings at all.
try:
    by_a_ring(readonly)
    say('works', 'a ring', '')
except OSError as error:
    say('works' if error.errno in (1, 38) else 'BROKEN', 'a ring', error)

ordinary('reading what may be read', lambda: read(readonly))
ordinary('reading beside the closed file', lambda: read(beside))
ordinary('writing beside the closed file', lambda: write(beside))
ordinary('editing', lambda: (write('a.txt', 'one'), shell('sed -i s/one/two/ a.txt'), os.rename('a.txt', 'b.txt'), os.truncate('b.txt', 1)))
ordinary('folders', lambda: (os.makedirs('x/y'), os.rename('x/y', 'z'), os.rmdir('z')))
ordinary('moving to the folder for temporary files', lambda: (write('m'), os.rename('m', os.environ['TMPDIR'] + '/m')))
ordinary('hard link of its own', lambda: (write('one'), os.link('one', 'two')))
ordinary('pipe, link, socket', lambda: (os.mkfifo('ff'), os.symlink('b.txt', 'l'), socket.socket(socket.AF_UNIX).bind('s')))
ordinary('mktemp', lambda: shell('t=$(mktemp) && echo x > $t && rm $t && d=$(mktemp -d) && touch $d/a && rm -r $d'))
ordinary('a build script', lambda: (write('build.sh', '#!/bin/sh\nset -e\nmkdir -p out\necho built > out/result\n'), os.chmod('build.sh', 0o755), shell('./build.sh && cat out/result')))
ordinary('a here document and a process substitution', lambda: shell('cat <<E >/dev/null\nx\nE\ndiff <(echo a) <(echo a)'))
ordinary('python', lambda: shell('python3 -c "import json, tempfile; tempfile.NamedTemporaryFile().write(b\'x\')"'))
ordinary('node', lambda: shell('node -e \'require("fs").writeFileSync("node.txt", "x"); require("child_process").execSync("cat node.txt")\''))
ordinary('devices', lambda: (write('/dev/null'), os.read(os.open('/dev/urandom', os.O_RDONLY), 4)))
ordinary('a terminal of its own', lambda: os.close(os.openpty()[0]))
forbidden('a terminal of others', lambda: os.open('/dev/tty', os.O_RDWR))
ordinary('tar and find', lambda: shell('tar cf t.tar b.txt && tar tf t.tar && find . -name b.txt'))
