#!/usr/bin/env python3
"""Types what the pages show, and wants what they print.

A block that begins with ```console has commands behind "$ " (a line that ends in a backslash goes on) and, below each,
what it writes to standard output; a line "..." stands for any lines. All blocks of a page run in one folder that looks
like a clone. A picture docs/figures/RUN/NAME.png is what the page left as results/RUN/NAME.png: the CSVs beside the two
must have the same bytes. With --remake the pages take what was printed (where no "..." stands) and what was drawn.

usage: console.py INFLIGHT ROOT [--remake] PAGE...
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile

CLONE = ['configs', 'docs', 'gpu', 'include', 'policies', 'reports', 'tests', 'traces']
PICTURE = re.compile(r'!\[[^\]]*\]\((?:docs/)?figures/(\w+)/(\w+)\.png\)')
MOST_S = 120


class Command:
    def __init__(self, line):
        self.line, self.typed, self.shown = line, '', []


def read_commands(lines):
    """The commands of a page; `line` is the place of what they print."""
    commands, inside, goes_on = [], False, False
    for number, line in enumerate(lines):
        if line.startswith('```'):
            inside = not inside and line.strip() == '```console'
        elif inside and (line.startswith('$ ') or goes_on):
            if not goes_on:
                commands.append(Command(number))
            command = commands[-1]
            command.typed += line if goes_on else line[2:]
            command.line = number + 1
            goes_on = line.rstrip('\n').endswith('\\')
        elif inside:
            commands[-1].shown.append(line.rstrip('\n'))
    return commands


def alike(shown, printed):
    """Whether the lines are the same, "..." being any."""
    if not shown:
        return not printed
    if shown[0] == '...':
        return any(alike(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and shown[0] == printed[0] and alike(shown[1:], printed[1:])


def type_in(command, folder):
    """The lines that it prints. Trailing blanks do not count."""
    done = subprocess.run(['sh', '-c', command.typed], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=MOST_S, check=False)
    if done.returncode:
        sys.exit(f'$ {command.typed}exit code {done.returncode}: {done.stderr}')
    return [line.rstrip() for line in done.stdout.splitlines()]


def clone(folder, inflight, root):
    for name in CLONE:
        os.symlink(os.path.join(root, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, 'build'))
    os.symlink(inflight, os.path.join(folder, 'build', 'inflight'))


def check_pictures(text, folder, root, remake):
    n_wrong = 0
    for run, name in PICTURE.findall(text) if shutil.which('gnuplot') else []:
        kept, drawn = (os.path.join(at, run, name) for at in (f'{root}/docs/figures', f'{folder}/results'))
        if remake:
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            for extension in '.png', '.csv':
                shutil.copyfile(drawn + extension, kept + extension)
        elif not filecmp.cmp(kept + '.csv', drawn + '.csv', shallow=False):
            n_wrong += 1
            print(f'{kept}.csv is not what the page draws now')
    return n_wrong


def check(page, inflight, root, remake):
    path = os.path.join(root, page)
    with open(path, encoding='utf-8') as file:
        lines = file.readlines()
    commands, n_wrong = read_commands(lines), 0
    with tempfile.TemporaryDirectory() as folder:
        clone(folder, inflight, root)
        for command in commands:
            command.printed = type_in(command, folder)
            if not alike([line.rstrip() for line in command.shown], command.printed):
                n_wrong += 1
                print(f'{page}:{command.line}: $ {command.typed}the page shows', *command.shown, sep='\n')
                print('where it prints', *command.printed, sep='\n')
        n_wrong += check_pictures(''.join(lines), folder, root, remake)
    for command in reversed(commands if remake else []):
        if '...' not in command.shown:
            lines[command.line:command.line + len(command.shown)] = [line + '\n' for line in command.printed]
    if remake:
        with open(path, 'w', encoding='utf-8') as file:
            file.writelines(lines)
    print(f'{page}: {len(commands)} commands')
    return n_wrong or not commands


def main(arguments):
    remake = '--remake' in arguments
    inflight, root, *pages = [argument for argument in arguments if argument != '--remake']
    wrong = [page for page in pages if check(page, os.path.abspath(inflight), os.path.abspath(root), remake)]
    if wrong and not remake:
        print('to show what it prints now, and look at it: python3 tests/docs/console.py build/inflight . --remake',
              *wrong)
    return 1 if wrong else 0


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
