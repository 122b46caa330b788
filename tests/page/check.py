#!/usr/bin/env python3
"""Pages of `inflight report` in a browser: their numbers are those of the CSVs, they can be read with the keyboard and
with a screen reader, in both themes, and they open fast.

usage: check.py INFLIGHT ROOT [FOLDER]; with a FOLDER, what was drawn stays there as pictures.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

STUDY = '''
model: llama-2-7b
hardware: a100-80gb-sxm
workload: {trace: traces/data/sharegpt-8k-lengths.csv.gz, filter: sharegpt, shuffle: true, limit: 60,
           arrivals: {process: poisson, rate_rps: 4, seed: 7}}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 600}}
slo: {ttft_s: 2.0, tpot_s: 0.1}
output: {steps: true, work: true, plots: false}
sweep: {serving.preset: [vllm-v0, sarathi], workload.arrivals.rate_rps: [2, 8, 32]}
'''
LINEAR = '''
workload: {trace: trace.csv}
serving: {preset: vllm-v0, max_model_len: 2048, kv: {num_blocks: 2000}}
cost: {model: linear, step_s: 0.005, prefill_token_s: 0.00002}
output: {plots: false}
'''
LEAVING = LINEAR.replace('step_s: 0.005, prefill_token_s: 0.00002', 'step_s: 0.02, prefill_token_s: 0.0001')
SEARCH = LINEAR.replace('{trace: trace.csv}', '{trace: trace.csv, limit: 200, arrivals: {process: poisson, rate_rps: 20}}')
FLEET = LINEAR + 'cluster: {router: round-robin, pools: {a: {count: 1}, b: {count: 1, serving: {kv: {num_blocks: 1000}}}}}\n'
RECORDED = 'traces/data/recorded/llmd-a100-tp2-1rps.csv.gz'
n_wrong = 0


def want(holds, what):
    global n_wrong
    if not holds:
        n_wrong += 1
        print(f'FAILED: {what}')


def near(found, expected, what, relative=0.0, absolute=0.0):
    want(abs(found - expected) <= max(absolute, relative * abs(expected)), f'{what}: {found}, expected {expected}')


def read(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def inflight(*words):
    subprocess.run([PROGRAM, *words], check=True, stdout=subprocess.DEVNULL)


def make(name, text, *settings):
    with open(f'{name}.yaml', 'w', encoding='utf-8') as file:
        file.write(text)
    inflight('run', f'{name}.yaml', '--quiet', '-o', name, *(word for of in settings for word in ('--set', of)))


def opened(browser, page):
    browser.complaints.clear()
    browser.requested.clear()
    took_s = browser.open(page)
    want(not browser.complaints, f'{page}: the console says {browser.complaints}')
    want([url.rsplit('/', 1)[1] for url in browser.requested] == [os.path.basename(page)],
         f'{page} asks for {browser.requested}')
    return took_s


def choose(browser, list_id, value):
    browser.run(
        f'''(() => {{ const list = document.getElementById({json.dumps(list_id)});
        list.value = {json.dumps(str(value))};
        list.dispatchEvent(new Event('change')); }})()''')


# ---- numbers ----

def check_summary(browser, name):
    """Every cell of every numeric column, in full and as it is shown."""
    browser.click('#all-columns')
    cells = browser.run('''[...document.querySelectorAll('#summary tbody tr')].map((line) =>
        Object.fromEntries([...line.children].map((cell) =>
            [cell.dataset.column, [cell.dataset.value, cell.textContent]])))''')
    rows = read(f'{name}/summary.csv')
    want(len(cells) == len(rows), f'{len(cells)} rows of {len(rows)}')
    n = 0
    for row, line in zip(rows, cells):
        for column, value in row.items():
            if column in ('error', 'assumed', 'saturated') or '.' in column:
                continue
            full, shown = line[column]
            n += 1
            if value == '':
                want(full == '' and shown == '-', f'{column}: {full} {shown}, expected none')
                continue
            near(float(full), float(value), column)
            scale = 100 if column.endswith('_frac') else 1000 if any(
                of in column for of in ('tpot', 'itl', 'normalized')) else 1
            near(float(shown), float(value) * scale, f'{column} as shown', 5.1e-4, 5.1e-7)
    want(n > 300, f'only {n} cells were compared')
    browser.click('#all-columns')


def check_percentiles(browser, name, number):
    for latency, scale in ('ttft_s', 1), ('itl_s', 1000), ('queue_s', 1):
        choose(browser, 'latency', latency)
        shown = browser.run('''[...[...document.querySelectorAll('#distributions tbody tr')].find((line) =>
            line.firstChild.textContent === here().label).children].map((cell) => cell.textContent)''')
        rows = {float(row['quantile']): row for row in read(f'{name}/quantiles.csv') if int(row['point']) == number}
        for text, q in zip(shown[1:], (0.5, 0.9, 0.95, 0.99, 0.999, 1)):
            near(float(text), float(rows[q][latency]) * scale, f'quantile {q} of {latency}', 5.1e-4, 1e-6 * scale)


def check_requests(browser, name, number):
    """Every column of every request, and the life of one as it stands on the page."""
    rows = [row for row in read(f'{name}/requests.csv') if int(row['point']) == number]
    columns = [
        'request_id',
        'replica',
        'arrival_s',
        'queue_s',
        'ttft_s',
        'e2e_s',
        'prefill_s',
        'decode_s',
        'stalled_s',
        'max_itl_s',
        'prompt_tokens',
        'output_tokens',
        'cached_tokens',
        'preemptions']
    for column in columns:
        found = browser.run(f'Array.from(requestsOf(here()).{column})')
        want(len(found) == len(rows), f'{len(found)} requests of {len(rows)}')
        off = max(abs(value - float(row[column])) for value, row in zip(found, rows))
        # decode_s is the rest of three times, each rounded to a microsecond
        want(off <= (2.1e-6 if column == 'decode_s' else 5.1e-7), f'{column} of a request is off by {off}')
    row = rows[len(rows) // 2]
    browser.run("document.getElementById('request-id').focus()")
    browser.call('Input.insertText', text=row['request_id'])
    browser.key('Enter')
    facts = browser.run(
        '''Object.fromEntries([...document.querySelectorAll('#life .facts > div')].map((fact) =>
            [...fact.children].map((part) => part.textContent)))''')
    for label, column in ('TTFT', 'ttft_s'), ('end to end', 'e2e_s'), ('arrival',
                                                                       'arrival_s'), ('in the queue', 'queue_s'):
        near(float(facts[label].split()[0]), float(row[column]), f'the life says {label}', 5.1e-4, 5.1e-6)
    want(facts['prompt'] == f"{row['prompt_tokens']} tokens", f"a prompt of {facts['prompt']}")
    want(f"Request {row['request_id']}: finished" == browser.run(
        "document.querySelector('#life h3').textContent"), 'the name of a life')


def check_steps(browser, name, number):
    """Single steps as they are; bins by what they hold in all."""
    rows = [row for row in read(f'{name}/steps.csv') if int(row['point']) == number and float(row['duration_s']) > 0]
    steps = browser.run(
        '''(() => { const of = columnsOf(here().run.steps, here().number);
        return {n: of.n, start: Array.from(of.start_s), tokens: Array.from(of.prefill_tokens)}; })()''')
    want(0 < steps['n'] <= len(rows), f"{steps['n']} single steps of {len(rows)}")
    for row, start, tokens in zip(rows, steps['start'], steps['tokens']):
        near(start, float(row['start_s']), 'a step starts', 0, 5.1e-7)
        near(tokens, int(row['prefill_tokens']), 'tokens of a step')
    held = browser.run('''(() => { const of = columnsOf(here().run.over_time, here().number), width = of.of.width_s;
        const sum = (name) => of[name].reduce((all, value) => all + value * width, 0);
        return ['batch_seqs', 'queued_requests', 'kv_used_frac', 'decode_tok_per_s'].map(sum); })()''')
    for found, value in zip(held, (lambda row: int(row['prefill_seqs']) +
                                   int(row['decode_seqs']), lambda row: int(row['waiting']) +
                                   int(row['swapped']), lambda row: int(row['kv_used_blocks']) /
                                   int(row['kv_total_blocks']), lambda row: int(row['decode_tokens']) /
                                   float(row['duration_s']))):
        near(found, sum(value(row) * float(row['duration_s']) for row in rows), 'a value over time', 2e-3)


def check_work(browser, name, number):
    kept = browser.run('''(() => { const of = columnsOf(here().run.work, here().number);
        return Array.from({length: of.n}, (_, i) =>
            [of.step[i], of.request_id[i], of.prefill_tokens[i], of.decode_tokens[i]]); })()''')
    rows = [[int(row[of]) for of in ('step', 'request_id', 'prefill_tokens', 'decode_tokens')]
            for row in read(f'{name}/work.csv') if int(row['point']) == number]
    want(kept and kept == rows[:len(kept)], 'work of the first steps')


def check_load(browser, name):
    """Each point of the chart as its text says it, for two metrics; by the keyboard's way."""
    rows = read(f'{name}/summary.csv')
    for metric, scale in ('mean_ttft_s', 1), ('p99_tpot_s', 1000):
        choose(browser, 'load-metric', metric)
        browser.run("document.querySelector('#load figure svg').focus()")
        for row in rows[:3]:
            browser.key('ArrowRight')
            said = browser.run("document.getElementById('live').textContent")
            want(
                said.startswith(f"{row['serving.preset']} / rate_rps {row['workload.arrivals.rate_rps']},"),
                f'the chart says {said}')
            near(float(said.split(': ')[1].split()[0]), float(row[metric]) * scale, f'{metric} in the chart', 5.1e-4)
        browser.key('ArrowDown')
        said = browser.run("document.getElementById('live').textContent")
        want(said.startswith('sarathi'), f'another series says {said}')


# ---- keyboard, pointer, screen reader ----

def check_keyboard(browser):
    browser.run('document.activeElement.blur(); window.scrollTo(0, 0)')
    browser.run("document.querySelector('.skip').focus()")
    want(browser.run("document.querySelector('.skip').getBoundingClientRect().left >= 0"),
         'the skip link is not to be seen')
    seen = set()
    for _ in range(200):
        browser.key('Tab')
        seen.add(browser.run(
            "(document.activeElement.closest('section') || document.activeElement).id"))
    want({'flown', 'summary', 'load', 'distributions', 'time', 'requests',
         'schedule', 'differences', 'theme'} <= seen, f'Tab reaches only {seen}')

    browser.run("document.querySelector('#summary button[data-column=mean_ttft_s]').focus()")
    for wanted, sign in ('ascending', 1), ('descending', -1):
        browser.key('Enter')
        sorted_by, values = browser.run('''[document.querySelector('#summary th[aria-sort]').getAttribute('aria-sort'),
            [...document.querySelectorAll('#summary td[data-column=mean_ttft_s]')].map((cell) =>
                Number(cell.dataset.value))]''')
        want(
            sorted_by == wanted and values == sorted(
                values,
                key=lambda value: sign *
                value),
            f'{wanted} is {sorted_by}, {values}')

    choose(browser, 'load-metric', 'mean_ttft_s')  # draws anew
    browser.run("document.querySelector('#load figure svg').focus()")
    browser.key('ArrowRight')
    browser.key('ArrowRight')
    browser.key('Enter')
    want(browser.run('here().label') == 'vllm-v0 / rate_rps 8', f"Enter shows {browser.run('here().label')}")
    want(
        browser.run("document.getElementById('point').selectedOptions[0].text") == 'vllm-v0 / rate_rps 8',
        'the list of points')

    browser.run("document.querySelector('#time [role=slider]').focus()")
    whole = browser.run('windowNow()')
    browser.key('+')
    browser.key('ArrowRight')
    part = browser.run('windowNow()')
    near(part[1] - part[0], (whole[1] - whole[0]) / 2, 'plus halves the window', 1e-9)
    near(part[0] - whole[0], (whole[1] - whole[0]) * 3 / 8, 'an arrow moves it by a quarter', 1e-9)
    browser.key('Escape')
    want(browser.run('windowNow()') == whole, 'Escape shows all')

    browser.run("document.querySelector('#schedule [role=button]').focus()")
    browser.key('Enter')
    want(browser.run("document.querySelector('#life h3') !== null"), 'Enter on a line of the schedule shows no life')


def check_pointer(browser):
    x, y = browser.place('#load figure svg', 0.5, 0.5)
    browser.mouse('mouseMoved', x, y)
    want(
        'rate_rps 8' in browser.run("(document.querySelector('#tip:not([hidden])') || document.querySelector('#live')).textContent"),
        'no value under the pointer')
    x, y = browser.place('#time [role=slider]', 0.3, 0.4)
    to_x, _ = browser.place('#time [role=slider]', 0.6, 0.4)
    whole = browser.run('windowNow()')
    browser.drag(x, y, to_x)
    part = browser.run('windowNow()')
    want(whole[0] < part[0] < part[1] < whole[1], f'the brush leaves {part} of {whole}')
    seen = browser.run("[...document.querySelectorAll('#time input')].map((input) => Number(input.value))")
    near(seen[0], part[0], 'the window in figures', 0, 5.1e-4)
    browser.click('#window-all')
    browser.run("document.getElementById('life').replaceChildren()")
    browser.place('#requests figure svg')
    x, y = browser.run(
        '''(() => { const box = document.querySelector('#requests figure svg circle').getBoundingClientRect();
        return [box.left + 2, box.top + 2]; })()''')
    browser.mouse('mousePressed', x, y)
    browser.mouse('mouseReleased', x, y)
    want(browser.run("document.querySelector('#life h3') !== null"), 'a click on a request shows no life')


NAMED = {
    'button',
    'combobox',
    'checkbox',
    'slider',
    'textbox',
    'spinbutton',
    'image',
    'img',
    'link',
    'table',
    'region',
    'heading'}


def check_screen_reader_of(browser, page):
    nodes = browser.call('Accessibility.getFullAXTree')['nodes']
    roles = {}
    for node in nodes:
        role = node.get('role', {}).get('value')
        if node.get('ignored') or role not in NAMED:
            continue
        roles[role] = roles.get(role, 0) + 1
        want(node.get('name', {}).get('value', '').strip(), f'{page}: a {role} without a name')
    return roles


def check_screen_reader(browser, page):
    roles = check_screen_reader_of(browser, page)
    want(roles.get('combobox', 0) >= 4 and roles.get('slider') == 1, f'{page}: a screen reader finds {roles}')
    twice = browser.run(
        '''(() => { const ids = [...document.querySelectorAll('[id]')].map((of) => of.id);
        return ids.filter((id, i) => ids.indexOf(id) !== i); })()''')
    want(not twice, f'{page}: two elements are called {twice}')


def luminance(colour):
    """Of "#rrggbb" (WCAG 2.2, relative luminance)."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_themes(browser, page):
    grounds = set()
    browser.run('localStorage.clear()')  # the theme that was chosen before
    for theme in 'light', 'dark':
        browser.look(1280, 900, theme)
        opened(browser, page)
        colours = browser.run(
            '''Object.fromEntries(
            ['ground', 'raised', 'ink', 'faint', 'accent', 'mark', ...Array.from({length: 8}, (_, i) => `c${i}`)]
            .map((name) => [name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()]))''')
        grounds.add(browser.run('getComputedStyle(document.body).backgroundColor'))
        for name in 'ink', 'faint', 'accent':
            for ground in ('ground', 'raised') if name != 'accent' else ('ground', 'mark'):
                want(
                    contrast(
                        colours[name],
                        colours[ground]) >= 4.5,
                    f'{theme}: {name} on {ground} has a contrast of {contrast(colours[name], colours[ground]):.2f}')
        for i in range(8):
            want(
                contrast(
                    colours[f'c{i}'],
                    colours['ground']) >= 3,
                f"{theme}: series {i} has a contrast of {contrast(colours[f'c{i}'], colours['ground']):.2f}")
    want(len(grounds) == 2, 'the dark theme has the ground of the light one')
    before = browser.run('getComputedStyle(document.body).backgroundColor')
    browser.click('#theme')
    want(browser.run('getComputedStyle(document.body).backgroundColor')
         != before, 'the button for the theme does nothing')
    opened(browser, page)
    want(browser.run('getComputedStyle(document.body).backgroundColor') != before, 'the theme is forgotten')
    browser.run('localStorage.clear()')


def check_narrow(browser, page):
    browser.look(360, 740)
    opened(browser, page)
    want(browser.run('document.documentElement.scrollWidth') <= 360, 'a narrow page scrolls sideways')
    browser.look(1280, 900)


# ---- several runs; beside a recording; large ones ----

def check_differences(browser):
    inflight('compare', 'study', 'other')
    shown = browser.run(
        '''[...document.querySelectorAll('#differences .wide tbody tr')].map((line) =>
        [...line.children].map((cell) => cell.dataset.value))''')
    found = {(line[0], line[1]): line[2:] for line in shown}
    n = 0
    for row in read('other/compare.csv'):
        line = found.get((f"{row['serving.preset']}, {row['workload.arrivals.rate_rps']}",
                         row['metric'] + (' by request' if row['paired_by'] == 'request' else '')))
        for value, column in zip(line or [], ('base', 'other', 'difference', 'difference_ci95')):
            want((value == '') == (row[column] == ''), f"{row['metric']}: {column} is {value}, expected {row[column]}")
            if value and row[column]:
                near(float(value), float(row[column]), f"{row['metric']}: {column}", 1e-8)
                n += 1
    want(n > 300, f'only {n} differences were compared')


def check_recorded(browser):
    shown = browser.run(
        '''[...document.querySelectorAll('#recorded .wide tbody tr')].map((line) =>
        [...line.children].map((cell) => cell.dataset.value))''')
    rows = read('recorded/validation.csv')
    want(len(shown) == len(rows), f'{len(shown)} findings of {len(rows)}')
    for line, row in zip(shown, rows):
        want(line[:2] == [row['metric'], row['statistic']], f'{line[:2]}')
        for value, column in zip(line[2:6], ('simulated', 'measured', 'error', 'relative_error')):
            want((value == '') == (row[column] == ''), f'{line[:2]}: {column} is {value}')
            if value:
                near(float(value), float(row[column]), f'{line[:2]}: {column}', 1e-8)
    dots = browser.run("document.querySelectorAll('#recorded circle[r=\"2\"]').length")
    want(dots == len(read('recorded/validation_requests.csv')), f'{dots} pairs')


def check_replicated(browser):
    """Means with intervals, from replications.csv."""
    row = read('eight/replications.csv')[0]
    shown = browser.run("document.querySelector('#summary td[data-column=mean_ttft_s]').textContent")
    mean, half = (float(text) for text in shown.split(' ± '))
    near(mean, float(row['mean_ttft_s']), 'a mean of replications', 5.1e-4)
    near(half, float(row['mean_ttft_s_ci95']), 'the half of its interval', 5.1e-4)
    want(browser.run("document.querySelectorAll('#summary tbody tr').length") == 2, 'a row a combination')
    want(browser.run('points.length') == 6, 'the replications of each can be shown')


def check_left(browser):
    """Requests that left have a count, a mark and a box each, on the page as in requests.csv."""
    inflight('trace', 'generate', '-n', '400', '--prompt', 'lognormal:220,1.2,4,3000', '--output-tokens',
             'lognormal:40,1,1,200', '-o', 'trace.csv')
    make('left', LEAVING, 'workload.arrivals={process: poisson, rate_rps: 40, seed: 3}', 'workload.limit=400',
         'workload.patience={process: exponential, mean_s: 1}', 'workload.deadline_s=2', 'serving.max_queued_reqs=20',
         'serving.batching.max_seqs=4', 'output.steps=true')
    inflight('report', 'left', '-o', 'left.html')
    opened(browser, 'left.html')
    statuses = [row['status'] for row in read('left/requests.csv')]
    counts = {status: statuses.count(status) for status in set(statuses)}
    want(len(counts) >= 4, f'too few kinds of leaving to look at: {counts}')
    boxes = browser.run("[...document.querySelectorAll('#statuses label')].map((label) => label.textContent.trim())")
    want(sorted(boxes) == sorted(f"{status.replace('_', ' ')} ({n})" for status, n in counts.items()),
         f'boxes {boxes} of {counts}')
    marks = browser.run("""(() => { const of = document.querySelector('#statuses');
        return [...of.querySelectorAll('svg.mark')].map((mark) => mark.innerHTML); })()""")
    want(len(set(marks)) == len(counts), 'two statuses have the same mark')
    shown = browser.run("document.querySelector('#requests-note').textContent")
    want(shown.startswith(f'{len(statuses)} requests'), f'the page shows {shown}')
    browser.click('#status-3')
    shown = browser.run("document.querySelector('#requests-note').textContent")
    want(shown.startswith(f"{len(statuses) - counts['aborted']} requests"), f'without those aborted it shows {shown}')
    lines = browser.run("document.querySelector('#schedule-note').textContent")
    want(f"of {len(statuses) - counts['aborted']} in" in lines, f'the schedule shows {lines}')
    browser.click('#status-3')
    row = next(row for row in read('left/requests.csv') if row['status'] == 'timed_out')
    browser.run(f"chooseRequest(requestsOf(here()).request_id.indexOf({row['request_id']}))")
    want(browser.run("document.querySelector('#life h3').textContent") == f"Request {row['request_id']}: timed out",
         'the life of a request that timed out')
    summary = browser.run("""Object.fromEntries([...document.querySelectorAll('#summary td')].map((cell) =>
        [cell.dataset.column, cell.dataset.value]))""")
    want(int(summary['aborted']) == counts['aborted'] and int(summary['shed']) == counts['shed'],
         f'the summary says {summary}')
    check_screen_reader(browser, 'left.html')


def check_swept(browser):
    """A metric against a swept number that is no rate, a line for each value of the other key."""
    make('swept', LINEAR, 'sweep={cost.step_s: [0.005, 0.02, 0.01], serving.batching.max_seqs: [2, 16]}',
         'workload={trace: trace.csv, limit: 60, arrivals: {process: poisson, rate_rps: 10}}')
    inflight('report', 'swept', '-o', 'swept.html')
    opened(browser, 'swept.html')
    choose(browser, 'load-against', 'cost.step_s')
    choose(browser, 'load-metric', 'mean_e2e_s')
    browser.run("document.querySelector('#load figure svg').focus()")
    rows = read('swept/summary.csv')
    for step_s, max_seqs in ('0.005', '2'), ('0.01', '2'), ('0.02', '2'):
        browser.key('ArrowRight')
        said = browser.run("document.getElementById('live').textContent")
        row = next(row for row in rows
                   if (row['cost.step_s'], row['serving.batching.max_seqs']) == (step_s, max_seqs))
        want(said.startswith(f'step_s {step_s} / max_seqs {max_seqs},'), f'the chart says {said}')
        near(float(said.split(': ')[1].split()[0]), float(row['mean_e2e_s']), 'a mean against step_s', 5.1e-4)
    names = browser.run("[...document.querySelectorAll('#load .legend li')].map((line) => line.textContent)")
    want(names == ['max_seqs 2', 'max_seqs 16'], f'lines {names}')


def mean_of_curve(points, from_s, to_s):
    """Of [x, y], each of which holds until the next."""
    ends = [x for x, _ in points[1:]] + [to_s]
    return sum(y * (end - x) for (x, y), end in zip(points, ends)) / (to_s - from_s)


def check_fleet(browser):
    """Curves over time are of all replicas, in the whole run and in a part of it; nothing is said to be left out of a few steps;
    the only mark against load is in the middle."""
    inflight('trace', 'generate', '-n', '60', '--prompt', 'fixed:300', '--output-tokens', 'fixed:40', '-o', 'even.csv')
    workload = 'workload={trace: even.csv, arrivals: {process: poisson, rate_rps: 40, seed: 3}}'
    make('fleet', FLEET, workload, 'output.steps=true')
    make('alone', LINEAR, workload, 'output.steps=true')
    for name, pools in ('fleet', [2000, 1000]), ('alone', [2000]):
        inflight('report', name, '-o', f'{name}.html')
        opened(browser, f'{name}.html')
        rows = [row for row in read(f'{name}/steps.csv') if float(row['duration_s']) > 0]
        want({int(row['kv_total_blocks']) for row in rows} == set(pools), f'the pools of {name}')
        values = (('batch', lambda row: int(row['prefill_seqs']) + int(row['decode_seqs'])),
                  ('queue', lambda row: int(row['waiting'])),
                  ('used', lambda row: 100 * int(row['kv_used_blocks']) / sum(pools)))
        first, last = browser.run('spanOf(here())')
        for from_s, to_s in (first, last), (first + (last - first) / 4, first + (last - first) / 2):
            curves = browser.run(f'''(() => {{ const curves = curvesOf(here(), {from_s}, {to_s});
                return Object.fromEntries(['batch', 'queue', 'used'].map((name) =>
                    [name, curves[name].filter((point) => point.x <= {to_s}).map((point) => [point.x, point.y])])); }})()''')
            for curve, value in values:
                held = sum(value(row) * max(0, min(to_s, float(row['start_s']) + float(row['duration_s'])) -
                                            max(from_s, float(row['start_s']))) for row in rows)
                near(mean_of_curve(curves[curve], from_s, to_s), held / (to_s - from_s), f'{curve} of {name}', 0.04, 0.02)
        shown = browser.run("document.getElementById('time-source').textContent")
        want(('single steps' in shown) == (name == 'alone'), f'{name} shows {shown}')
        want(browser.run("document.getElementById('left-out') === null"), f'{name}: all of its steps are on the page')
        where = browser.run("""(() => { const box = document.querySelector('#load figure svg').getBoundingClientRect(),
            mark = document.querySelector('#load figure svg circle').getBoundingClientRect();
            return (mark.left + mark.width / 2 - box.left) / box.width; })()""")
        near(where, 0.5, f'{name}: the only mark against load', 0, 0.05)


def check_capacities(browser):
    """Folders of inflight capacity, alone and beside a run."""
    with open('search.yaml', 'w', encoding='utf-8') as file:
        file.write(SEARCH)
    inflight('capacity', 'search.yaml', '--quiet', '-o', 'search', '--set', 'capacity={criterion: delay}',
             '--set', 'sweep={serving.preset: [vllm-v0, sarathi], capacity.delay_s: [0.1, 0.4]}',
             '--set', 'replications=2')
    for page, runs in (('search.html', ['search']), ('both.html', ['left', 'search'])):
        inflight('report', *runs, '-o', page)
        opened(browser, page)
        lines = browser.run("""[...document.querySelectorAll('#capacities tbody tr')].map((line) =>
            Object.fromEntries([...line.children].map((cell) =>
            [cell.dataset.column, [cell.dataset.value, cell.textContent]])))""")
        rows = read('search/capacity.csv')
        want(len(lines) == len(rows) == 4, f'{len(lines)} deployments')
        for line, row in zip(lines, rows):
            want(line['deployment'][1] == f"{row['serving.preset']} / delay_s {row['capacity.delay_s']}",
                 f"a deployment is called {line['deployment'][1]}")
            for column in 'capacity_rps', 'output_throughput_tok_per_s', 'p90_ttft_s', 'gpus':
                near(float(line[column][0]), float(row[column]), f'{column} of a search', 1e-8)
            low, high = (float(text) for text in line['capacity_rps'][1].split('[')[1].rstrip(']').split(', '))
            near(low, float(row['capacity_low_rps']), 'the interval begins', 5.1e-4)
            near(high, float(row['capacity_high_rps']), 'the interval ends', 5.1e-4)
            cost = float(row['gpus']) / float(row['output_throughput_tok_per_s']) * 1e6
            near(float(line['cost'][0]), cost, 'GPU time of a million tokens', 1e-8)
        series = browser.run("capacitySeries('capacity.delay_s').map((of) => of.points.map((point) => point.x))")
        want(series == [[0.1, 0.4], [0.1, 0.4]], f'the chart has {series}')
        want(browser.run("document.getElementById('flown') !== null") == (len(runs) == 2), f'the sections of {page}')
        check_screen_reader_of(browser, page)


def check_large(browser):
    """A study of 100 points and 100,000 requests is less than 5 MB and opens in 2 s; more requests are sampled."""
    inflight(
        'trace',
        'generate',
        '-n',
        '1000',
        '--prompt',
        'lognormal:220,1.2,4,1024',
        '--output-tokens',
        'lognormal:20,1,1,200',
        '--process',
        'poisson',
        '--rate',
        '20',
        '-o',
        'trace.csv')
    rates = ','.join(str(10 + i) for i in range(50))
    make(
        'hundred',
        LINEAR +
        'sweep: {serving.preset: [vllm-v0, vllm-v1]}',
        'output.steps=true',
        'output.work=true',
        f'sweep.workload.arrivals.rate_rps=[{rates}]',
        'workload.arrivals.process=poisson')
    inflight('report', 'hundred', '-o', 'hundred.html')
    n_bytes = os.path.getsize('hundred.html')
    want(n_bytes < 5e6, f'100 points and 100,000 requests take {n_bytes} bytes')
    # The least of three, as the machine may have other work.
    took_s = min(opened(browser, 'hundred.html') for _ in range(3))
    want(took_s < 2, f'100,000 requests open in {took_s:.2f} s')
    want(browser.run('points.reduce((all, point) => all + requestsOf(point).n, 0)') == 100000, 'all requests are there')
    print(f'100 points, 100,000 requests: {n_bytes} bytes, open in {took_s:.2f} s')

    inflight(
        'trace',
        'generate',
        '-n',
        '130000',
        '--prompt',
        'fixed:9',
        '--output-tokens',
        'lognormal:5,1,1,30',
        '--process',
        'poisson',
        '--rate',
        '500',
        '-o',
        'trace.csv')
    make('many', LINEAR)
    inflight('report', 'many', '-o', 'many.html')
    opened(browser, 'many.html')
    rows = read('many/requests.csv')
    want(browser.run('Array.from(requestsOf(here()).request_id)') == [
         int(row['request_id']) for row in rows[::2]], 'one request in two')
    said = browser.run("document.getElementById('left-out').textContent")
    want('one row in 2 of requests.csv, which has 130000' in said, f'the page says to leave out {said}')
    want('no steps.csv' in browser.run("document.getElementById('schedule').textContent"),
         'the page does not say that there are no steps')


def check_study(browser):
    number = 4  # sarathi, 8 requests a second
    opened(browser, 'study.html')
    want(browser.run('document.title') == 'study - inflight', 'the title')
    config = browser.run("document.querySelector('#flown pre').textContent")
    with open('study/config.yaml', encoding='utf-8') as file:
        want(config == file.read(), 'the configuration is not config.yaml')
    want(browser.run("document.querySelector('.assumed li').textContent")
         == read('study/summary.csv')[0]['assumed'], 'what was assumed')
    check_summary(browser, 'study')
    check_load(browser, 'study')
    choose(browser, 'point', number)
    for check in check_percentiles, check_requests, check_steps, check_work:
        check(browser, 'study', number)
    check_keyboard(browser)
    check_pointer(browser)
    check_screen_reader(browser, 'study.html')
    want(not browser.complaints, f'in the end the console says {browser.complaints}')


def make_all():
    make('study', STUDY)
    make('other', STUDY, 'serving.kv.num_blocks=300')
    make('eight', STUDY, 'sweep.workload.arrivals.rate_rps=null', 'replications=3', 'output.work=false')
    inflight('run', os.path.join(ROOT, 'configs/validation/llmd-a100-tp2.yaml'), '--quiet', '-o',
             'recorded', '--set', f'workload.trace={RECORDED}', '--set', 'output.plots=false')
    inflight('validate', 'recorded', os.path.join(ROOT, RECORDED), '--no-plots')
    inflight('report', 'study', '-o', 'study.html')
    inflight('report', 'eight', '-o', 'eight.html')
    inflight('report', 'study', 'other', '-o', 'two.html')
    inflight('report', 'recorded', '-o', 'recorded.html')


def keep_pictures(browser, folder):
    for page in 'study', 'two', 'eight', 'recorded':
        for width, theme in (1280, 'light'), (1280, 'dark'), (360, 'light'):
            browser.look(width, 900, theme)
            browser.open(f'{page}.html')
            browser.screenshot(os.path.join(folder, f'{page}-{width}-{theme}.png'))


def main(pictures):
    make_all()
    browser = Browser(CHROMIUM)
    try:
        browser.look(1280, 900)
        check_study(browser)
        for page, check in ('two.html', check_differences), ('recorded.html',
                                                             check_recorded), ('eight.html', check_replicated):
            opened(browser, page)
            check(browser)
            check_screen_reader(browser, page)
            check_themes(browser, page)
            check_narrow(browser, page)
        check_narrow(browser, 'study.html')
        check_left(browser)
        check_swept(browser)
        check_fleet(browser)
        check_capacities(browser)
        check_large(browser)
        if pictures:
            keep_pictures(browser, pictures)
    finally:
        browser.close()
    return 1 if n_wrong else 0


if __name__ == '__main__':
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    CHROMIUM = shutil.which('chromium')
    if not CHROMIUM:
        print('no chromium: skipped')
        sys.exit(77)
    PROGRAM, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
    PICTURES = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
    os.environ['INFLIGHT_DATA'] = ROOT
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        CODE = main(PICTURES)
        os.chdir('/')
    sys.exit(CODE)
