#!/usr/bin/env python3
"""Every relative link of a Markdown page leads to a file, and its anchor to a heading there.

Links are found outside of code, as [text](target), ![text](target) and [name]: target. A heading's anchor is GitHub's:
lower case, blanks as hyphens, everything but letters, digits, hyphens and underscores left out, -1 and so on behind
repeated ones. A link to an address on the network is not followed. Folders named build* and results, and hidden ones
but .github, are left out, as are the pages that this test breaks on purpose.

usage: links.py ROOT
"""

import os
import re
import sys
import urllib.parse

FENCE = re.compile(r'^ *(```|~~~)')
LINK = re.compile(r'\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)')
REFERENCE = re.compile(r'^ {0,3}\[[^\]]+\]:\s+(\S+)')
HEADING = re.compile(r'^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$')
ELSEWHERE = re.compile(r'^[a-z][a-z0-9+.-]*:', re.IGNORECASE)


def pages_of(root):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f == '.github' or not f.startswith(('.', 'build')))
        if folder == root and 'results' in folders:
            folders.remove('results')
        if os.path.relpath(folder, root) == os.path.join('tests', 'docs'):
            folders[:] = [f for f in folders if f != 'broken']
        yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith('.md'))


def prose_of(path):
    """Numbered lines without code."""
    fenced, before = False, ''
    with open(path, encoding='utf-8') as page:
        for number, line in enumerate(page, 1):
            if FENCE.match(line):
                fenced = not fenced
            indented = line.startswith('    ') and not before.strip()
            if not fenced and not indented:
                yield number, re.sub(r'`[^`]*`', lambda code: 'x' * len(code.group()), line)
                before = line
            elif fenced:
                before = line


def anchors_of(path):
    seen, anchors, fenced = {}, set(), False
    with open(path, encoding='utf-8') as page:
        for line in page:
            fenced ^= bool(FENCE.match(line))
            heading = None if fenced else HEADING.match(line)
            if heading:
                text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading.group(1)).lower()
                slug = re.sub(r'[^\w\- ]', '', text).replace(' ', '-')
                n = seen.get(slug, 0)
                seen[slug] = n + 1
                anchors.add(f'{slug}-{n}' if n else slug)
    return anchors


def wrong_with(path, target):
    """What is wrong with a link, or None."""
    if ELSEWHERE.match(target):
        return None
    name, _, anchor = urllib.parse.unquote(target).partition('#')
    there = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
    if not os.path.exists(there):
        return 'no such file'
    if not anchor:
        return None
    if not there.endswith('.md'):
        return 'an anchor of a file that is no page'
    return None if anchor in anchors_of(there) else 'no such heading'


def main(root):
    n_pages = n_links = n_broken = 0
    for path in pages_of(root):
        n_pages += 1
        for number, line in prose_of(path):
            for target in LINK.findall(line) + REFERENCE.findall(line):
                n_links += 1
                wrong = wrong_with(path, target)
                if wrong:
                    n_broken += 1
                    print(f'{os.path.relpath(path, root)}:{number}: {target}: {wrong}')
    print(f'{n_pages} pages, {n_links} links, {n_broken} broken')
    return 1 if n_broken or not n_links else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(os.path.abspath(sys.argv[1])))
