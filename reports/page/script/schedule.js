/* The scheduler in the window: its steps, and below them a line for each request. */

const LINES = 40, LINE = 15, STEPS_HEIGHT = 90;

class Schedule {
    constructor(host) {
        this.host = host;
        this.from = 0;
        new ResizeObserver(() => host.clientWidth !== this.width && this.draw()).observe(host);
    }

    stepBars(point, from, to, toX) {
        const single = singleSteps(point, from, to);
        if (!single)
            return [svg(
                'text', {x: MARGIN.left, y: 20},
                columnsOf(point.run.steps, point.number) ? 'single steps: zoom in, or choose another window' :
                                                           'no steps.csv')];
        const {steps, chosen} = single,
                      most = Math.max(1, ...chosen.map((i) => steps.prefill_tokens[i] + steps.decode_tokens[i]));
        const bar = (i, tokens, below, fillWith) => {
            const tall = STEPS_HEIGHT * tokens / most, left = toX(Math.max(from, steps.start_s[i])),
                  right = toX(Math.min(to, steps.start_s[i] + steps.duration_s[i]));
            return svg(
                'rect', {
                    x: left,
                    y: 4 + STEPS_HEIGHT - tall - STEPS_HEIGHT * below / most,
                    width: Math.max(0.4, right - left - 0.3),
                    height: tall,
                    fill: fillWith
                },
                svg('title', {},
                    `replica ${steps.replica[i]}, step ${steps.step[i]} at ${digits(steps.start_s[i])} s: ${
                        seconds(steps.duration_s[i])}, ` +
                        `${steps.prefill_tokens[i]} tokens of prompts, ${steps.decode_tokens[i]} of answers, ${
                            steps.running[i]} in the batch, ${steps.waiting[i]} in the queue`));
        };
        this.said = `${chosen.length} steps, the largest of ${most} tokens`;
        return chosen.flatMap(
            (i) =>
                [bar(i, steps.decode_tokens[i], 0, 'var(--c0)'),
                 ...(steps.prefill_tokens[i] ? [bar(i, steps.prefill_tokens[i], steps.decode_tokens[i], 'var(--c1)')] :
                                               [])]);
    }

    /* The steps in which a request computed, where work.csv tells of them. */
    workMarks(point, from, to, toX, y, id) {
        const work = columnsOf(point.run.work, point.number), steps = columnsOf(point.run.steps, point.number);
        if (!work || !steps) return [];
        const index = new Map();
        for (let i = 0; i < steps.n; i++) index.set(`${steps.replica[i]} ${steps.step[i]}`, i);
        const marks = [];
        for (let i = 0; i < work.n; i++) {
            const at = work.request_id[i] === id ? index.get(`${work.replica[i]} ${work.step[i]}`) : undefined;
            if (at !== undefined && steps.start_s[at] <= to && steps.start_s[at] + steps.duration_s[at] >= from)
                marks.push(
                    svg('rect', {
                        x: toX(Math.max(from, steps.start_s[at])),
                        y: y + 3,
                        height: LINE - 7,
                        fill: 'var(--ground)',
                        'fill-opacity': 0.55,
                        width: Math.max(
                            0.3,
                            toX(Math.min(to, steps.start_s[at] + steps.duration_s[at])) -
                                toX(Math.max(from, steps.start_s[at])) - 0.8)
                    },
                        svg('title', {},
                            `step ${work.step[i]}: ${work.prefill_tokens[i] || work.decode_tokens[i]} tokens`)));
        }
        return marks;
    }

    line(point, requests, i, y, from, to, toX) {
        const id = requests.request_id[i], spans = lifeSpans(requests, i), left = requests.status[i] !== FINISHED,
              last = Math.max(requests.arrival_s[i], ...spans.map(([, end]) => end));
        /* When it left is not known, only up to when something is. */
        const end = left && last >= from && last <= to ?
            [svg(
                'g', {},
                mark(STATUS_STYLES[requests.status[i]], toX(last) + 5, y + 7, 4, requests.status[i] === HOLLOW_STATUS),
                svg('title', {}, statusOf(requests, i)))] :
            [];
        const bars = spans.filter(([start, end]) => end >= from && start <= to)
                         .map(
                             ([start, end, fillWith, text]) =>
                                 svg('rect', {
                                     x: toX(Math.max(from, start)),
                                     y: y + 1,
                                     height: LINE - 3,
                                     width: Math.max(0.5, toX(Math.min(to, end)) - toX(Math.max(from, start))),
                                     fill: fillWith
                                 },
                                     svg('title', {}, `request ${id}, ${text}: ${seconds(end - start)}`)));
        const choose = () => {
            chooseRequest(i);
            say(`request ${id}: its life stands above`);
        };
        return svg(
            'g', {
                tabindex: 0,
                role: 'button',
                'aria-label': `request ${id}, ${statusOf(requests, i)}: ${
                    spans.map(([start, end, , text]) => `${text} ${seconds(end - start)}`).join(', ')}`,
                style: 'cursor: pointer',
                onclick: choose,
                onkeydown: (event) => {
                    if (event.key === 'Enter' || event.key === ' ') {
                        event.preventDefault();
                        choose();
                    }
                }
            },
            svg('text', {x: MARGIN.left - 6, y: y + 11, 'text-anchor': 'end'}, `${id}`), bars, end,
            this.workMarks(point, from, to, toX, y, id));
    }

    draw() {
        const point = here(), requests = requestsOf(point), [from, to] = windowNow();
        this.width = this.host.clientWidth || 600;
        if (!requests) return;
        const room = Math.max(100, this.width - MARGIN.left - MARGIN.right),
              toX = (t) => MARGIN.left + room * (t - from) / (to - from);
        const all = requestsIn(point, from, to);
        this.n = all.length;
        this.from = Math.max(0, Math.min(this.from, this.n - 1));
        this.said = '';
        const page = all.slice(this.from, this.from + LINES), top = STEPS_HEIGHT + 12,
              bottom = top + page.length * LINE;
        const bars = this.stepBars(point, from, to, toX);
        const root =
            svg('svg', {
                viewBox: `0 0 ${this.width} ${bottom + 36}`,
                height: bottom + 36,
                role: 'group',
                'aria-label': `Schedule from ${digits(from)} s to ${digits(to)} s. ${this.said}`
            },
                bars, page.map((i, k) => this.line(point, requests, i, top + k * LINE, from, to, toX)),
                svg('path', {class: 'axis', d: `M${MARGIN.left},4V${bottom}H${this.width - MARGIN.right}`}),
                linearTicks(from, to, Math.max(2, room / 90))
                    .map((t) => svg('text', {x: toX(t), y: bottom + 15, 'text-anchor': 'middle'}, String(t))),
                svg('text', {x: MARGIN.left + room / 2, y: bottom + 32, 'text-anchor': 'middle'}, 'time (s)'),
                svg('text', {transform: `translate(12,${4 + STEPS_HEIGHT / 2}) rotate(-90)`, 'text-anchor': 'middle'},
                    'tokens'));
        this.host.replaceChildren(root);
    }
}

function showSchedule() {
    const host = el('div', {}), schedule = new Schedule(host), note = el('p', {class: 'note', id: 'schedule-note'});
    const draw = () => {
        schedule.draw();
        const first = schedule.n ? schedule.from + 1 : 0;
        note.textContent = requestsOf(here()) ?
            `Requests ${first} to ${Math.min(schedule.n, schedule.from + LINES)} of ${
                schedule.n} in the window, by arrival${schedule.said ? `; ${schedule.said}` : ''}.` :
                                                                       `No requests.csv: ${NONE}.`;
    };
    const turn = (by) => {
        schedule.from = Math.max(0, schedule.from + by < schedule.n ? schedule.from + by : schedule.from);
        draw();
        say(note.textContent);
    };
    section(
        'schedule', 'Schedule',
        el('p', {class: 'note'},
           'Above, each step: as wide as it took, as high as its tokens, those of prompts on those of answers. Below, each request: in the queue, until its first token, ' +
               'until its last; marks inside are the steps that computed it, where work.csv tells. A window is chosen above.'),
        el('div', {class: 'controls'},
           el('button', {
               type: 'button',
               id: 'zoom-busy',
               onclick: () => {
                   const [from, to] = windowNow(), steps = columnsOf(here().run.steps, here().number);
                   if (steps && steps.n)
                       chooseWindow(steps.start_s[0], steps.start_s[Math.min(120, steps.n - 1)]);
                   else
                       chooseWindow(from, from + (to - from) / 20);
               }
           },
              'a short window'),
           el('button', {type: 'button', id: 'previous', onclick: () => turn(-LINES)}, 'previous requests'),
           el('button', {type: 'button', id: 'next', onclick: () => turn(LINES)}, 'next requests')),
        note, host);
    whenChanged('window', () => {
        schedule.from = 0;
        draw();
    });
}
