# Signals, tracing and memory of what is outside: core, the shim, another run's agent, a process of the machine.
def ptrace(thread):
    # PTRACE_SEIZE, which stops nothing by itself.
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(0x4206, thread, None, None) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def vm_read(pid):
    buffer = ctypes.create_string_buffer(8)
    local = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(buffer), 8))
    with open('/proc/self/maps') as maps:
        address = int(maps.readline().split('-')[0], 16)
    remote = ctypes.create_string_buffer(struct.pack('QQ', address, 8))
    return call(PROCESS_VM_READV, pid, local, 1, remote, 1, 0)

core, shim, other, victim = T['core'], os.getppid(), T['other'], T['victim']

for name, pid in (('core', core), ('shim', shim), ('other', other), ('victim', victim)):
    # What would really end something is tried on the two that are there for it.
    hard = '-9' if name in ('other', 'victim') else '-0'
    number = int(hard[1:])
    forbidden(f'bash {name}', lambda: shell(f'kill {hard} {pid}'))
    forbidden(f'python {name}', lambda: os.kill(pid, number))
    forbidden(f'node {name}', lambda: shell(f'node -e "process.kill({pid}, {number})"'))
    forbidden(f'pidfd {name}', lambda: signal.pidfd_send_signal(os.pidfd_open(pid), number))
    if name in ('core', 'victim'):
        forbidden(f'bash builtin {name}', lambda: shell(f'builtin kill {hard} {pid}'))
        forbidden(f'bash in a variable {name}', lambda: shell(f'p={pid}; k=kill; $k {hard} $p'))
        forbidden(f'dash {name}', lambda: shell(f'kill {hard} {pid}', 'sh'))
        forbidden(f'/bin/kill {name}', lambda: shell(f'/bin/kill {hard} {pid}'))
        forbidden(f'env kill {name}', lambda: shell(f'env kill {hard} {pid}'))
        forbidden(f'xargs {name}', lambda: shell(f'echo {pid} | xargs kill {hard}'))
        forbidden(f'node by name {name}', lambda: shell(f'node -e "process.kill(parseInt(\'{pid}\'), {number})"'))
        forbidden(f'queued {name}', lambda: call(RT_SIGQUEUEINFO, pid, number, ctypes.create_string_buffer(struct.pack('iii', number, 0, -1) + bytes(116))))
        forbidden(f'as root of a name space {name}', lambda: shell(f'unshare -Ur kill {hard} {pid}'))
    for thread in os.listdir(f'/proc/{pid}/task'):
        forbidden(f'kill of a thread {name}', lambda: os.kill(int(thread), 0))
        forbidden(f'tkill {name}', lambda: call(TKILL, int(thread), 0))
        forbidden(f'tgkill {name}', lambda: call(TGKILL, pid, int(thread), 0))
        forbidden(f'tracing a thread {name}', lambda: ptrace(int(thread)))
    # A group of an outer PID name space has no number here, and 0 is one's own.
    if os.getpgid(pid) != 0:
        forbidden(f'its group {name}', lambda: os.killpg(os.getpgid(pid), 0))
    forbidden(f'tracing {name}', lambda: ptrace(pid))
    forbidden(f'its memory {name}', lambda: os.open(f'/proc/{pid}/mem', os.O_RDWR))
    forbidden(f'its descriptors {name}', lambda: os.readlink(f'/proc/{pid}/fd/0'))
    forbidden(f'taking a descriptor {name}', lambda: call(PIDFD_GETFD, os.pidfd_open(pid), 0, 0))
    forbidden(f'its working folder {name}', lambda: os.readlink(f'/proc/{pid}/cwd'))
    forbidden(f'its memory by a call {name}', lambda: vm_read(pid))
    # Root with its capabilities may read these of everybody, also from a domain.
    if not T['capable']:
        forbidden(f'its environment {name}', lambda: read(f'/proc/{pid}/environ'))
        forbidden(f'its map {name}', lambda: read(f'/proc/{pid}/maps'))

def owner_of_a_pipe():
    """SIGIO to somebody else, by the owner of a descriptor: the kernel sends it, in the name of who set the owner."""
    import fcntl
    reader, writer = socket.socketpair()
    fcntl.fcntl(reader, fcntl.F_SETSIG if hasattr(fcntl, 'F_SETSIG') else 10, signal.SIGTERM)
    fcntl.fcntl(reader, fcntl.F_SETOWN, victim)
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC)
    writer.send(b'x')
owner_of_a_pipe()
# The keys of a user are in reach of all that the user runs: KEYCTL_GET_KEYRING_ID, KEYCTL_SEARCH of the user's keyring.
forbidden('the keyring', lambda: call(KEYCTL, 0, -4, 1))
forbidden('a key', lambda: call(KEYCTL, 10, -4, b'user', b'name', 0))
forbidden('adding a key', lambda: call(ADD_KEY, b'user', b'worca-test', b'x', 1, -2))
forbidden('asking for a key', lambda: call(REQUEST_KEY, b'user', b'worca-test', None, -2))
forbidden('by an abstract socket', lambda: socket.socket(socket.AF_UNIX).connect('\0' + T['abstract']))
forbidden('by an abstract socket without a connection', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '\0' + T['abstract'] + '-d'))

def own_abstract():
    server = socket.socket(socket.AF_UNIX)
    server.bind('\0' + T['abstract'] + '-own')
    server.listen()
    socket.socket(socket.AF_UNIX).connect('\0' + T['abstract'] + '-own')
ordinary('an abstract socket of its own', own_abstract)
ordinary('its own child from bash', lambda: shell('sleep 600 & kill -0 $! && kill $!; wait; true'))
ordinary('its own job', lambda: shell('set -m; sleep 600 & kill -9 %1; wait; true'))
def own_child():
    child = subprocess.Popen(['sleep', '600'], start_new_session=True)
    os.killpg(child.pid, signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM
ordinary('a group of its own', own_child)
ordinary('its own limits', lambda: shell('ulimit -t 100; ulimit -n 64; python3 -c "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))"'))
ordinary('its own priority', lambda: shell('nice -n 5 true; renice -n 6 $$'))
ordinary('timeout', lambda: shell('timeout 0.1 sleep 600; [ $? = 124 ]'))
ordinary('itself', lambda: shell('trap "exit 0" TERM; kill $$; sleep 5; exit 1'))
ordinary('the state of its own child', lambda: read('/proc/self/environ'))
