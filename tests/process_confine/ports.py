# TCP ports that are closed, by every way that leads to one.
closed, closed6, allowed = T['closed'], T['closed6'], T['allowed']
stream = socket.SOCK_STREAM

def connect(family, address, protocol=0):
    with socket.socket(family, stream, protocol) as one:
        one.connect(address)

def by_flag(flag, port):
    """A connection that is opened by the first data."""
    with socket.socket() as one:
        if flag == 'sendto':
            return one.sendto(b'x', 0x20000000, ('127.0.0.1', port))
        return one.sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', port))

def many(port):
    """The same by sendmmsg(2)."""
    with socket.socket() as one:
        name = ctypes.create_string_buffer(struct.pack('=HH4s8x', socket.AF_INET, socket.htons(port), socket.inet_aton('127.0.0.1')))
        data = ctypes.create_string_buffer(b'x')
        vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 1))
        header = struct.pack('QIxxxxQQQQIxxxxIxxxx', ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0)
        return call(SENDMMSG, one.fileno(), ctypes.create_string_buffer(header), 1, 0x20000000)

forbidden('python', lambda: connect(socket.AF_INET, ('127.0.0.1', closed)))
forbidden('python, version 6', lambda: connect(socket.AF_INET6, ('::1', closed6)))
forbidden('an address of version 4 in 6', lambda: connect(socket.AF_INET6, ('::ffff:127.0.0.1', closed)))
forbidden('any address', lambda: connect(socket.AF_INET, ('0.0.0.0', closed)))
forbidden('bash', lambda: shell(f'exec 3<>/dev/tcp/127.0.0.1/{closed}'))
forbidden('node', lambda: shell(f'node -e \'require("net").connect({closed}, "127.0.0.1").on("error", e => {{ console.error(e); process.exit(1) }}).on("connect", () => process.exit(0))\''))
forbidden('without waiting', lambda: (lambda one: (one.setblocking(False), one.connect(('127.0.0.1', closed))))(socket.socket()))
forbidden('several paths (MPTCP)', lambda: connect(socket.AF_INET, ('127.0.0.1', closed), 262))
forbidden('several paths, version 6', lambda: connect(socket.AF_INET6, ('::1', closed6), 262))
forbidden('with upper bits in the protocol', lambda: call(SOCKET, 2, 1, 262 | 1 << 40) or socket.socket(fileno=call(SOCKET, 2, 1, 262 | 1 << 40)).connect(('127.0.0.1', closed)))
forbidden('the first data opens it', lambda: by_flag('sendto', closed))
forbidden('the first data opens it, in a message', lambda: by_flag('sendmsg', closed))
forbidden('the first data opens it, in many', lambda: many(closed))
forbidden('SCTP', lambda: connect(socket.AF_INET, ('127.0.0.1', closed), 132))
forbidden('SMC', lambda: socket.socket(43, stream).connect(('127.0.0.1', closed)))
forbidden('a machine below this one', lambda: socket.socket(40, stream).connect((2, closed)))
forbidden('a ring of requests', lambda: call(IO_URING_SETUP, 4, ctypes.create_string_buffer(120)))
forbidden('in a name space of users', lambda: shell(f'unshare -Ur bash -c "exec 3<>/dev/tcp/127.0.0.1/{closed}"'))

ordinary('the port that is open', lambda: connect(socket.AF_INET, ('127.0.0.1', allowed)))
ordinary('bash to the port that is open', lambda: shell(f'exec 3<>/dev/tcp/127.0.0.1/{allowed}'))
ordinary('node to the port that is open', lambda: shell(f'node -e \'require("net").connect({allowed}, "127.0.0.1").on("connect", () => process.exit(0))\''))
ordinary('a server of its own', lambda: (lambda one: (one.bind(('127.0.0.1', 0)), one.listen()))(socket.socket()))
ordinary('a pair of sockets', lambda: (lambda pair: (pair[0].sendall(b'x'), pair[1].recv(1)))(socket.socketpair()))
ordinary('a socket in a file', lambda: (lambda one: (one.bind('sock'), one.listen(), socket.socket(socket.AF_UNIX).connect('sock')))(socket.socket(socket.AF_UNIX)))
