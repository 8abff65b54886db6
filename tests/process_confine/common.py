# What every script of these tests starts with: `forbidden` and `ordinary` tell what a call came to.
import ctypes, json, os, signal, socket, struct, subprocess, sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# The numbers of system calls that Python has no name for; from 424 on they are the same everywhere.
import platform
X86 = platform.machine() == 'x86_64'
SOCKET, SENDMMSG = (41, 307) if X86 else (198, 269)
RENAMEAT2, NAME_TO_HANDLE_AT, OPEN_BY_HANDLE_AT = (316, 303, 304) if X86 else (276, 264, 265)
RT_SIGQUEUEINFO, TKILL, TGKILL, PROCESS_VM_READV = (129, 200, 234, 310) if X86 else (138, 130, 131, 270)
ADD_KEY, REQUEST_KEY, KEYCTL = (248, 249, 250) if X86 else (217, 218, 219)
IO_URING_SETUP, IO_URING_ENTER, OPEN_TREE, PIDFD_GETFD = 425, 426, 428, 438

def call(number, *arguments):
    """A raw system call; OSError as from any other."""
    result = libc.syscall(number, *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def say(kind, name, outcome):
    print(kind, name, outcome, sep='\t', flush=True)

def forbidden(name, attempt):
    try:
        say('OPEN', name, repr(attempt())[:200])
    except (OSError, subprocess.CalledProcessError) as error:
        say('held', name, error)

def ordinary(name, attempt):
    try:
        attempt()
        say('works', name, '')
    except Exception as error:
        say('BROKEN', name, repr(error))

def shell(line, program='bash'):
    """Raises where the line fails."""
    done = subprocess.run([program, '-c', line], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(done.returncode, (done.stdout + done.stderr)[-300:])
    return done.stdout

def read(path):
    with open(path) as file:
        return file.read()

def write(path, text='x', how='w'):
    with open(path, how) as file:
        file.write(text)

T = json.loads(os.environ['PLACES'])
