/* K/V pool, batch and queue over time, and the brush that chooses a window of it. */

const MOST_CURVE = 1500;

/* The single steps of a point in a window, if they cover it; else null. */
function singleSteps(point, from, to) {
    const steps = columnsOf(point.run.steps, point.number);
    if (!steps || !steps.n) return null;
    const whole = steps.n === steps.of.n_all;
    const last = steps.n - 1, end = steps.start_s[last] + steps.duration_s[last];
    if (!whole && (from < steps.start_s[0] || to > end)) return null;
    const chosen = [];
    for (let i = 0; i < steps.n && chosen.length <= MOST_CURVE; i++)
        if (steps.start_s[i] + steps.duration_s[i] >= from && steps.start_s[i] <= to) chosen.push(i);
    return chosen.length && chosen.length <= MOST_CURVE ? {steps, chosen} : null;
}

/* Waiting and begun requests, counted from the rows of requests.csv: for runs without steps.csv. */
function countRequests(point, from, to) {
    const requests = requestsOf(point), n = 400, width = (to - from) / n, every = point.run.requests.every;
    const waiting = new Float64Array(n), begun = new Float64Array(n);
    const add = (counts, start, end) => {
        for (let i = Math.max(0, Math.floor((start - from) / width)); i < n && from + i * width < end; i++)
            counts[i] +=
                Math.max(0, Math.min(end, from + (i + 1) * width) - Math.max(start, from + i * width)) / width * every;
    };
    for (let i = 0; i < requests.n; i++) {
        const arrival = requests.arrival_s[i], start = arrival + requests.queue_s[i], end = arrival + requests.e2e_s[i];
        if (Number.isFinite(end)) {
            add(waiting, arrival, start);
            add(begun, start, end);
        }
    }
    return {t: Array.from({length: n}, (_, i) => from + i * width), waiting, begun};
}

/* Curves of a window: {from: where they come from, batch: [...], queue, used, tokens, prefill, decode} of {x, y}. Steps of
 * several replicas overlap, and no single one tells of all replicas: only their bins do. */
function curvesOf(point, from, to) {
    const bins = columnsOf(point.run.over_time, point.number), nReplicas = bins && bins.of.n_replicas || 1;
    const single = nReplicas > 1 ? null : singleSteps(point, from, to);
    if (single) {
        const curve = (value) => single.chosen.map((i) => ({x: Math.max(from, single.steps.start_s[i]), y: value(i)}));
        const {steps} = single;
        return {
            from: `${single.chosen.length} single steps`,
            batch: curve((i) => steps.running[i]),
            queue: curve((i) => steps.waiting[i]),
            used: curve((i) => steps.kv_used_frac[i] * 100),
            prefill: curve((i) => steps.prefill_tokens[i] / steps.duration_s[i]),
            decode: curve((i) => steps.decode_tokens[i] / steps.duration_s[i])
        };
    }
    if (bins && bins.n) {
        const width = bins.of.width_s, chosen = [];
        for (let i = 0; i < bins.n; i++)
            if (bins.of.origin_s + (i + 1) * width >= from && bins.of.origin_s + i * width <= to) chosen.push(i);
        const curve = (name, scale = 1) =>
            chosen.map((i) => ({x: Math.max(from, bins.of.origin_s + i * width), y: bins[name][i] * scale}));
        return {
            from: `means over ${seconds(width)} of steps.csv` + (nReplicas > 1 ? `, of all ${nReplicas} replicas` : ''),
            batch: curve('batch_seqs'),
            queue: curve('queued_requests'),
            used: curve('kv_used_frac', 100),
            tokens: curve('kv_token_frac', 100),
            prefill: curve('prefill_tok_per_s'),
            decode: curve('decode_tok_per_s')
        };
    }
    if (!requestsOf(point)) return null;
    const counted = countRequests(point, from, to);
    const curve = (counts) => counted.t.map((x, i) => ({x, y: counts[i]}));
    return {
        from: 'requests.csv; output.steps: true tells of steps and K/V, too',
        batch: curve(counted.begun),
        queue: curve(counted.waiting)
    };
}

/* ---- the brush: the whole run, with the window as a box ---- */

class Brush {
    constructor(host) {
        this.host = host;
        new ResizeObserver(() => this.points && host.clientWidth !== this.width && this.draw(this.points))
            .observe(host);
    }

    draw(curve) {
        this.points = curve;
        this.width = this.host.clientWidth || 600;
        const [first, last] = spanOf(here()), room = Math.max(100, this.width - MARGIN.left - MARGIN.right);
        const highest = Math.max(1e-9, seenEnds(curve.map((point) => point.y))[1]);
        this.toX = (t) => MARGIN.left + room * (t - first) / (last - first);
        this.toTime = (x) => first + (last - first) * Math.max(0, Math.min(1, (x - MARGIN.left) / room));
        const path =
            curve
                .map(
                    (point, i) =>
                        `${i ? 'L' : 'M'}${this.toX(point.x).toFixed(1)},${(56 - 48 * point.y / highest).toFixed(1)}`)
                .join('');
        this.box = svg('rect', {class: 'window', y: 4, height: 52});
        this.root =
            svg('svg', {
                viewBox: `0 0 ${this.width} 74`,
                height: 74,
                tabindex: 0,
                role: 'slider',
                'aria-label': 'Window of time. Left and right keys move it, plus and minus zoom, Escape shows all.',
                'aria-valuemin': first,
                'aria-valuemax': last,
                onpointerdown: (event) => this.begin(event),
                onpointermove: (event) => this.drag(event),
                onpointerup: (event) => this.end(event),
                onkeydown: (event) => this.key(event),
                style: 'touch-action: none; cursor: crosshair',
            },
                svg('path', {d: `M${MARGIN.left},56H${MARGIN.left + room}`, class: 'axis'}),
                svg('path', {d: path, fill: 'none', stroke: colour(0)}), this.box,
                linearTicks(first, last, Math.max(2, room / 90))
                    .map((t) => svg('text', {x: this.toX(t), y: 71, 'text-anchor': 'middle'}, `${t}`)),
                svg('text', {x: MARGIN.left - 6, y: 34, 'text-anchor': 'end'}, 'queue'));
        this.host.replaceChildren(this.root);
        this.mark();
    }

    mark() {
        const [from, to] = this.dragged || windowNow();
        this.box.setAttribute('x', this.toX(from));
        this.box.setAttribute('width', Math.max(1, this.toX(to) - this.toX(from)));
        this.root.setAttribute('aria-valuenow', (from + to) / 2);
        this.root.setAttribute('aria-valuetext', `${digits(from)} s to ${digits(to)} s`);
    }

    at(event) {
        const box = this.root.getBoundingClientRect();
        return this.toTime((event.clientX - box.left) * this.width / box.width);
    }

    begin(event) {
        this.anchor = this.at(event);
        this.root.setPointerCapture(event.pointerId);
    }

    drag(event) {
        if (this.anchor === undefined) return;
        const now = this.at(event);
        this.dragged = [Math.min(this.anchor, now), Math.max(this.anchor, now)];
        this.mark();
    }

    end() {
        const dragged = this.dragged;
        this.anchor = this.dragged = undefined;
        if (dragged) chooseWindow(...dragged);
    }

    key(event) {
        const [from, to] = windowNow(), [first, last] = spanOf(here()), width = to - from,
                     by = Math.min(width / 4, event.key === 'ArrowLeft' ? from - first : last - to);
        const made = {
            ArrowLeft: [from - by, to - by],
            ArrowRight: [from + by, to + by],
            '+': [from + width / 4, to - width / 4],
            '-': [from - width / 2, to + width / 2],
            Escape: [first, last]
        }[event.key === '=' ? '+' : event.key];
        if (!made) return;
        event.preventDefault();
        chooseWindow(...made);
        say(this.root.getAttribute('aria-valuetext'));
    }
}

/* ---- the section ---- */

const NONE = 'not in the reports of this point';

function timeCharts() {
    return [
        {
            ...figure('Requests: in the batch, and in the queue (waiting or swapped out).'),
            zero: true,
            label: 'requests',
            title: 'Batch and queue',
            curves: [['batch', 'batch'], ['queue', 'queue']]
        },
        {
            ...figure('K/V blocks in use, and slots that hold a token, of all.'),
            max: 100,
            label: 'share of the pool (%)',
            title: 'K/V pool',
            curves: [['used', 'blocks in use'], ['tokens', 'slots that hold a token']]
        },
        {
            ...figure('Tokens that the steps computed.'),
            zero: true,
            label: 'tokens/s',
            title: 'Tokens computed',
            curves: [['prefill', 'prompts'], ['decode', 'answers']]
        },
    ];
}

function showTime() {
    const charts = timeCharts(), note = el('p', {class: 'note', id: 'time-source'}), brushHost = el('div', {}),
          brush = new Brush(brushHost);
    const from = el('input', {
        type: 'number',
        id: 'window-from',
        step: 'any',
        onchange: () => chooseWindow(Number(from.value), windowNow()[1])
    });
    const to = el(
        'input',
        {type: 'number', id: 'window-to', step: 'any', onchange: () => chooseWindow(windowNow()[0], Number(to.value))});
    const draw = () => {
        const [low, high] = windowNow(), curves = curvesOf(here(), low, high);
        from.value = low.toFixed(3);
        to.value = high.toFixed(3);
        note.textContent = curves ? `Shown: ${curves.from}.` : `No requests.csv or steps.csv: ${NONE}.`;
        for (const of of charts) {
            const series =
                of.curves.filter(([name]) => curves && curves[name]).map(([name, text]) => [name, text, curves[name]]);
            of.figure.hidden = series.length === 0;
            if (series.length)
                of.chart.draw({
                    title: of.title,
                    x: {label: 'time (s)', min: low, max: high},
                    y: {label: of.label, max: of.max, min: of.max && 0},
                    zero: of.zero,
                    height: 220,
                    series: series.map(([name, text, curve], style) => ({
                                           name: text,
                                           style,
                                           step: true,
                                           points: curve.filter((point) => point.x >= low && point.x <= high)
                                       }))
                });
        }
        if (brush.points) brush.mark();
    };
    section(
        'time', 'Over time',
        el('p', {class: 'note'},
           'Drag over the strip to zoom; the charts below it, the requests and the schedule show that window.'),
        brushHost,
        el('div', {class: 'controls'},
           el('label',
              {for: 'window-from'
              },
              'from (s)', from),
           el('label',
              {for: 'window-to'
              },
              'to (s)', to),
           el('button', {type: 'button', id: 'window-all', onclick: () => chooseWindow(...spanOf(here()))}, 'all')),
        note, el('div', {class: 'charts'}, charts.map((of) => of.figure)));
    whenChanged('point', () => {
        const curves = curvesOf(here(), ...spanOf(here()));
        brush.draw(curves ? curves.queue : []);
    });
    whenChanged('window', draw);
}
