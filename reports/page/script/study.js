/* What was flown, the summary, and latency against load. */

/* ---- what was flown ---- */

function distinct(run, column) {
    const at = run.summary.columns.indexOf(column);
    return at < 0 ? [] : [...new Set(run.summary.rows.map((row) => row[at]).filter((text) => text))];
}

function aboutRun(run) {
    const assumed = distinct(run, 'assumed'), errors = distinct(run, 'error');
    return [
        el('h3', {}, run.title),
        el('p', {class: 'note'}, `${run.dir}: ${run.summary.rows.length} points`,
           run.sweptKeys.length ? `, swept: ${run.sweptKeys.join(', ')}` : ''),
        assumed.length ? el('p', {}, 'Assumed, not measured:') :
                         el('p', {}, 'No duration rests on an assumption in place of a measurement.'),
        el('ul', {class: 'assumed'}, assumed.map((text) => el('li', {}, text))),
        errors.length ? el('p', {}, 'Points that failed:') : null,
        el('ul', {}, errors.map((text) => el('li', {}, text))),
        run.config ?
            el('details', {}, el('summary', {}, 'Configuration (config.yaml; running it again gives the same bytes)'),
               el('pre', {tabindex: 0}, run.config)) :
            el('p', {class: 'note'}, 'No config.yaml.'),
    ];
}

/* The rules by which the page was thinned, where one was at work. */
function whatIsLeftOut() {
    const said = [];
    for (const run of data.runs) {
        if (run.requests && run.requests.every > 1)
            said.push(
                `${run.title}: one row in ${run.requests.every} of requests.csv, which has ${run.requests.n_all}`);
        if (run.detailed < run.summary.rows.length)
            said.push(`${run.title}: distributions, requests and times of the first ${run.detailed} of ${
                run.summary.rows.length} points`);
        if (run.steps && run.steps.points.some((of) => of.n < of.n_all))
            said.push(
                `${run.title}: steps.csv as means over equal times of a point, and single steps of ` +
                `${data.from_s ? `the time from ${data.from_s} s on` : 'the beginning'}`);
    }
    return said.length ?
        [el('p', {}, 'What the page leaves out:'), el('ul', {id: 'left-out'}, said.map((text) => el('li', {}, text)))] :
        [];
}

function showFlown() { section('flown', 'What was flown', data.runs.flatMap(aboutRun), whatIsLeftOut()); }

/* ---- summary ---- */

const FIRST_COLUMNS = [
    'requests', 'finished', 'request_throughput_rps', 'output_throughput_tok_per_s', 'mean_ttft_s', 'p99_ttft_s',
    'mean_tpot_s', 'p99_itl_s', 'mean_e2e_s', 'p99_e2e_s', 'goodput_rps', 'attainment_frac', 'preemptions'
];
/* Shown where a request of the study has left so. */
const LEFT_COLUMNS = ['rejected', 'failed', 'aborted', 'timed_out', 'shed'];
const TEXTS = ['error', 'assumed', 'saturated'];

function metricColumns() {
    const names = data.runs[0].summary.columns.slice(data.runs[0].keys).filter((name) => !TEXTS.includes(name));
    return names.filter((name) => rows.some((row) => row.cells[name] !== undefined));
}

function metricColumn(name) {
    const of = metricOf(name);
    return {
        name,
        label: withUnit(name),
        number: true,
        value: (row) => row.cells[name],
        text: (row) => {
            const half = row.cells[`${name}_ci95`];
            const value = row.cells[name];
            const text = value === null || value === undefined ? '-' : digits(value * of.scale);
            return half ? `${text} ± ${digits(half * of.scale)}` : text;
        },
    };
}

function showSummary() {
    const host = el('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Summary table'});
    const replicated = data.runs.some((run) => run.replications);
    const point = {name: 'point', label: 'point', value: (row) => row.label};
    const saturated = {
        name: 'saturated',
        label: 'saturated',
        value: (row) => row.saturated ? 'yes' :
            row.cells.error           ? 'failed' :
                                        ''
    };
    const some = LEFT_COLUMNS.filter((name) => rows.some((row) => row.cells[name] > 0));
    const first = FIRST_COLUMNS.flatMap((name) => name === 'finished' ? [name, ...some] : [name]);
    const columnsFor = (all) =>
        [point, ...(all ? metricColumns() : first.filter((name) => metricColumns().includes(name))).map(metricColumn),
         saturated];
    section(
        'summary', 'Summary',
        el('p', {class: 'note'}, 'A head sorts; a point is then shown in detail below.',
           replicated ? ' Means of the replications, ± half of their 95% interval.' : ''),
        el('div', {class: 'controls'}, tick('all-columns', 'all columns', false, (all) => {
               table.columns = columnsFor(all);
               table.draw();
           })), host);
    const table = new Table(host, `${rows.length} points`, columnsFor(false), rows, (row) => choosePoint(pointOf(row)));
    whenChanged('point', () => {
        table.current = rowOf(here());
        table.draw();
    });
}

/* ---- latency against load ---- */

const LOAD_METRICS = [
    'mean_normalized_latency_s', 'mean_ttft_s', 'p50_ttft_s', 'p99_ttft_s', 'mean_tpot_s', 'p99_tpot_s', 'p99_itl_s',
    'mean_e2e_s', 'p99_e2e_s', 'mean_queue_s', 'output_throughput_tok_per_s', 'goodput_rps', 'attainment_frac',
    'preemptions', 'kv_token_frac'
];

const OFFERED = 'offered load (req/s)';

function loadPoint(row, x, metric) {
    const of = metricOf(metric), value = row.cells[metric], half = row.cells[`${metric}_ci95`];
    if (value === null || value === undefined) return null;
    const point = {
        x,
        y: value * of.scale,
        hollow: row.saturated,
        pick: row,
        text: `${row.label}\n${of.label}: ${shown(metric, value)}` + (half ? ` ± ${shown(metric, half)}` : '') +
            (row.saturated ? '\nsaturated: the backlog grew to the end' : '')
    };
    return half ? {...point, low: (value - half) * of.scale, high: (value + half) * of.scale} : point;
}

/* A latency that grows by powers of ten is drawn on a logarithm at first. */
function growsBeyond(metric) {
    const [low, high] = seenEnds(rows.map((row) => row.cells[metric]).filter((value) => value > 0));
    return high > 30 * low;
}

/* Swept keys with numbers, other than the rate, that every run has. */
function sweptNumbers() {
    const valueOf = (row, key) => row.values[row.run.sweptKeys.indexOf(key)];
    return [...new Set(rows.flatMap((row) => row.run.sweptKeys))].filter(
        (key) => !isRate(key) &&
            rows.every(
                (row) => row.run.sweptKeys.includes(key) && valueOf(row, key) !== '' &&
                    Number.isFinite(Number(valueOf(row, key)))) &&
            new Set(rows.map((row) => valueOf(row, key))).size > 1);
}

/* The lines of a chart against a swept key: the others name them. */
function linesAgainst(key, pointOfRow) {
    const lines = [];
    for (const row of rows) {
        const name = prefixed(row.run, labelOf(row.run.sweptKeys, row.values, (of) => of === key));
        if (!lines.some((line) => line.name === name))
            lines.push({name, style: lines.length, line: true, dots: true, points: []});
        const point = pointOfRow(row, Number(row.values[row.run.sweptKeys.indexOf(key)]));
        if (point) lines.find((line) => line.name === name).points.push(point);
    }
    lines.forEach((line) => line.points.sort((a, b) => a.x - b.x));
    return lines.filter((line) => line.points.length);
}

function showLoad() {
    const {figure: holder, chart} = figure(
        'A hollow mark is saturated: its backlog grew until the end of the arrivals, so its height says how long the run was. ' +
        'Enter or a click shows the point in detail.');
    const metrics =
        LOAD_METRICS.filter((name) => rows.some((row) => row.cells[name] !== null && row.cells[name] !== undefined));
    let metric = metrics[0], log = growsBeyond(metric), against = hasRate ? 'rate' : 'request_throughput_rps';
    const xOf = (row) => against === 'rate' ? row.rate : row.cells[against];
    const numbers = sweptNumbers();
    const draw = () => {
        const series = numbers.includes(against) ?
            linesAgainst(against, (row, x) => loadPoint(row, x, metric)) :
            seriesNames
                .map((name, style) => ({
                         name,
                         style,
                         line: true,
                         dots: true,
                         points: rows.filter((row) => row.series === style)
                                     .map((row) => loadPoint(row, xOf(row), metric))
                                     .filter((point) => point)
                                     .sort((a, b) => a.x - b.x)
                     }))
                .filter((of) => of.points.length);
        chart.draw({
            title: `${metricOf(metric).label} against ${numbers.includes(against) ? shortKey(against) : 'load'}`,
            x: {
                label: against === 'rate'     ? OFFERED :
                    numbers.includes(against) ? shortKey(against) :
                                                withUnit(against)
            },
            y: {label: withUnit(metric), log},
            zero: true,
            series,
            height: 340,
            onPick: (row) => choosePoint(pointOf(row))
        });
    };
    section(
        'load', 'Latency against load',
        el('div', {class: 'controls'},
           choice(
               'load-metric', 'metric', metrics.map((name) => [name, withUnit(name)]), metric,
               (name) => {
                   metric = name;
                   draw();
               }),
           choice(
               'load-against', 'against',
               [
                   ...(hasRate ? [['rate', OFFERED]] : []),
                   ['request_throughput_rps', withUnit('request_throughput_rps')],
                   ['output_throughput_tok_per_s', withUnit('output_throughput_tok_per_s')],
                   ...numbers.map((key) => [key, shortKey(key)])
               ],
               against,
               (name) => {
                   against = name;
                   draw();
               }),
           tick(
               'load-log', 'logarithmic', log,
               (on) => {
                   log = on;
                   draw();
               })),
        holder);
    draw();
}

/* ---- distributions ---- */

const LATENCIES = ['ttft_s', 'tpot_s', 'itl_s', 'e2e_s', 'normalized_latency_s', 'queue_s'];
const QUANTILES = [0.5, 0.9, 0.95, 0.99, 0.999, 1];

/* The chosen point, and those at its rate of the other series and runs; of a study without a rate, all. In the order of
 * the series, whose colours they have. */
function besidePoint() {
    const row = rowOf(here());
    const beside = rows.filter((other) => !hasRate || other.rate === row.rate)
                       .map(pointOf)
                       .filter((index) => index >= 0 && index !== state.point);
    const style = (point) => rowOf(point).series;
    return [state.point, ...beside].slice(0, 8).map((index) => points[index]).sort((a, b) => style(a) - style(b));
}

function quantile(curve, latency, q) {
    let best = 0;
    for (let i = 0; i < curve.n; i++)
        if (Math.abs(curve.quantile[i] - q) < Math.abs(curve.quantile[best] - q)) best = i;
    return Math.abs(curve.quantile[best] - q) < 1e-6 ? curve[latency][best] : NaN;
}

function tailPoints(curve, latency, name, asShare) {
    const of = metricOf(latency), made = [];
    for (let i = 0; i < curve.n; i++) {
        const above = 1 - curve.quantile[i], value = curve[latency][i];
        made.push({
            x: value * of.scale,
            y: asShare ? curve.quantile[i] * 100 : Math.max(above, 1e-4) * 100,
            text: `${name}\n${Number((curve.quantile[i] * 100).toPrecision(6))}% are at most ${shown(latency, value)}`
        });
    }
    return made;
}

function showDistributions() {
    const {figure: holder, chart} = figure(
        'The share of requests (of gaps, for ITL) that lies above a value: p99 stands at 1%, p99.9 at 0.1%, the largest at the bottom.');
    const table = el('div', {});
    let latency = 'ttft_s', tails = true, log = true;
    const draw = () => {
        const curves = besidePoint()
                           .map((point) => ({point, curve: columnsOf(point.run.quantiles, point.number)}))
                           .filter((of) => of.curve);
        chart.draw({
            title: `Distribution of ${metricOf(latency).label}`,
            height: 340,
            x: {label: withUnit(latency), log},
            y: tails ? {label: 'share above (%)', log: true, min: 0.01, max: 100} :
                       {label: 'share at or below (%)', min: 0, max: 100},
            series: curves.map(({point, curve}) => ({
                                   name: point.label,
                                   style: rowOf(point).series,
                                   step: true,
                                   points: tailPoints(curve, latency, point.label, !tails)
                               }))
        });
        table.replaceChildren(plainTable(
            `Percentiles of ${withUnit(latency)}`,
            ['point', ...QUANTILES.map((q) => q === 1 ? 'largest' : `p${Number((q * 100).toPrecision(6))}`)],
            curves.map(
                ({point, curve}) =>
                    [point.label,
                     ...QUANTILES.map((q) => digits(quantile(curve, latency, q) * metricOf(latency).scale))])));
    };
    section(
        'distributions', 'Distributions',
        el('div', {class: 'controls'},
           choice(
               'latency', 'latency', LATENCIES.map((name) => [name, withUnit(name)]), latency,
               (name) => {
                   latency = name;
                   draw();
               }),
           tick(
               'tails', 'tails', true,
               (on) => {
                   tails = on;
                   draw();
               }),
           tick(
               'latency-log', 'logarithmic', true,
               (on) => {
                   log = on;
                   draw();
               })),
        holder, table);
    whenChanged('point', draw);
}
