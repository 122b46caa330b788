#!/usr/bin/env python3
"""Runs a command on a terminal of so many columns and prints what it shows there.

usage: on_terminal.py COLUMNS COMMAND...
"""

import fcntl
import os
import pty
import struct
import sys
import termios


def main():
    columns, command = int(sys.argv[1]), sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
        os.execvp(command[0], command)
    shown = b''
    while True:
        try:
            some = os.read(terminal, 65536)
        except OSError:  # the command has closed it
            break
        if not some:
            break
        shown += some
    sys.stdout.buffer.write(shown.replace(b'\r\n', b'\n'))
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == '__main__':
    main()
