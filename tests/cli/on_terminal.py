#!/usr/bin/env python3
"""Runs a command on a terminal of so many columns and prints what it shows there.

usage: on_terminal.py COLUMNS COMMAND...
"""

import fcntl
import os
import select
import struct
import sys
import termios

ALL_IS_HERE_S = 0.1  # what an ended command has written reaches the other side within that


def start(terminal, columns, command):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for fd in 0, 1, 2:
            os.dup2(terminal, fd)
        os.execvp(command[0], command)
    return child


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    reader, terminal = os.openpty()  # both stay open: the end of the last writer may cut what it has written
    child = start(terminal, columns, command)
    shown, status = b'', None
    while True:
        if select.select([reader], [], [], ALL_IS_HERE_S)[0]:
            shown += os.read(reader, 65536)
        elif status is not None:
            break
        else:
            ended, found = os.waitpid(child, os.WNOHANG)
            status = found if ended else None
    sys.stdout.buffer.write(shown.replace(b'\r\n', b'\n'))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == '__main__':
    main()
