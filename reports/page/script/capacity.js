/* What searches for the capacity have found: a row a deployment, the capacity against a swept number, the fronts. */

const capacities = [];

function addSearch(search) {
    const keys = search.capacities.columns.slice(0, search.keys), several = data.searches.length > 1;
    search.capacities.rows.forEach((row) => {
        const label = labelOf(keys, row, () => false);
        capacities.push({
            search,
            keys,
            values: row.slice(0, search.keys),
            cells: cellsByName(search.capacities, row),
            label: several ? `${search.name}${label ? `: ${label}` : ''}` : label || search.name,
        });
    });
}
data.searches.forEach(addSearch);

const UNKNOWN = (value) => value === null || value === undefined;

const hasPrices = capacities.some((row) => !UNKNOWN(row.cells.usd_per_million_output_tokens));

/* USD a million output tokens; without prices GPU seconds for as many. */
const COST = hasPrices ? 'USD per million output tokens' : 'GPU s per million output tokens';
const costOf = ({cells}) => hasPrices     ? cells.usd_per_million_output_tokens :
    cells.output_throughput_tok_per_s > 0 ? cells.gpus / cells.output_throughput_tok_per_s * 1e6 :
                                            null;

function numberColumn(name, label, value, digitsOf = digits) {
    return {name, label, number: true, value, text: (row) => UNKNOWN(value(row)) ? '-' : digitsOf(value(row))};
}

function withInterval({cells}) {
    if (UNKNOWN(cells.capacity_rps)) return cells.status;
    const low = cells.capacity_low_rps, high = cells.capacity_high_rps,
          text = cells.status === 'unbounded' ? `at least ${digits(cells.capacity_rps)}` : digits(cells.capacity_rps);
    return UNKNOWN(low) || UNKNOWN(high) ? text : `${text} [${digits(low)}, ${digits(high)}]`;
}

const capacityColumns = () =>
    [{name: 'deployment', label: 'deployment', value: (row) => row.label}, {
        name: 'capacity_rps',
        label: 'capacity (req/s), 95% interval',
        number: true,
        value: (row) => row.cells.capacity_rps,
        text: withInterval
    },
     numberColumn('gpus', 'GPUs', (row) => row.cells.gpus), numberColumn('cost', COST, costOf),
     ...['output_throughput_tok_per_s', 'p90_ttft_s', 'p99_itl_s', 'attainment_frac'].map(
         (name) => numberColumn(
             name, withUnit(name), (row) => row.cells[name], (value) => digits(value * metricOf(name).scale))),
     {
         name: 'best',
         label: 'best in',
         value: ({cells}) => [cells.cheapest && 'cost', cells.pareto_ttft && 'cost and TTFT',
                              cells.pareto_tbt && 'cost and TBT']
                                 .filter(Boolean)
                                 .join(', ')
     }];

/* ---- the capacity against a swept number ---- */

/* Swept keys with numbers of which there are two. */
function numericKeys() {
    const keys = [...new Set(capacities.flatMap((row) => row.keys))];
    const valueOf = (row, key) => row.values[row.keys.indexOf(key)];
    return keys.filter(
        (key) => capacities.every((row) => row.keys.includes(key) && Number.isFinite(Number(valueOf(row, key)))) &&
            new Set(capacities.map((row) => valueOf(row, key))).size > 1);
}

function capacitySeries(key) {
    const names = [], series = [];
    for (const row of capacities) {
        const name = labelOf(row.keys, row.values, (of) => of === key) || row.search.name;
        if (!names.includes(name)) {
            names.push(name);
            series.push({name, style: names.length - 1, line: true, dots: true, points: []});
        }
        const {cells} = row;
        if (UNKNOWN(cells.capacity_rps)) continue;
        const point = {
            x: Number(row.values[row.keys.indexOf(key)]),
            y: cells.capacity_rps,
            hollow: cells.status === 'unbounded',
            text: `${row.label}\ncapacity (req/s): ${withInterval(row)}`
        };
        series[names.indexOf(name)].points.push(
            UNKNOWN(cells.capacity_low_rps) ? point :
                                              {...point, low: cells.capacity_low_rps, high: cells.capacity_high_rps});
    }
    series.forEach((of) => of.points.sort((a, b) => a.x - b.x));
    return series.filter((of) => of.points.length);
}

function capacityChart() {
    const keys = numericKeys();
    if (!keys.length) return [];
    const {figure: holder, chart} =
        figure('Lines up and down are 95% intervals. A hollow mark is a rate that was not yet too high.');
    let key = keys[0];
    const draw = () => chart.draw({
        title: `Capacity against ${shortKey(key)}`,
        x: {label: shortKey(key)},
        y: {label: 'capacity (req/s)'},
        zero: true,
        height: 320,
        series: capacitySeries(key)
    });
    draw();
    return [
        el('div', {class: 'controls'},
           choice(
               'capacity-key', 'against', keys.map((of) => [of, shortKey(of)]), key,
               (of) => {
                   key = of;
                   draw();
               })),
        holder
    ];
}

/* ---- cost against a latency ---- */

const FRONTS = ['p90_ttft_s', 'p99_itl_s'];

function frontChart() {
    const {figure: holder, chart} =
        figure('Cost at capacity. The line joins the deployments that no other equals in both and beats in one.');
    let latency = FRONTS[0];
    const draw = () => {
        const of = metricOf(latency);
        const pointsOf =
            capacities
                .map((row, style) => ({
                         row,
                         style,
                         x: UNKNOWN(row.cells[latency]) ? NaN : row.cells[latency] * of.scale,
                         y: UNKNOWN(costOf(row)) ? NaN : costOf(row)
                     }))
                .filter(({x, y}) => Number.isFinite(x) && Number.isFinite(y))
                .map((point) => ({
                         ...point,
                         text:
                             `${point.row.label}\n${withUnit(latency)}: ${digits(point.x)}\n${COST}: ${digits(point.y)}`
                     }));
        const beats = (a, b) => a.x <= b.x && a.y <= b.y && (a.x < b.x || a.y < b.y);
        const front = pointsOf.filter((of) => !pointsOf.some((other) => beats(other, of))).sort((a, b) => a.x - b.x);
        chart.draw({
            title: `${COST} against ${of.label}`,
            x: {label: withUnit(latency), log: true},
            y: {label: COST},
            zero: true,
            height: 320,
            series: [
                {name: 'front', style: 7, line: true, points: front},
                ...pointsOf.map((point) => ({name: point.row.label, style: point.style, dots: true, points: [point]}))
            ].filter((series) => series.points.length)
        });
    };
    draw();
    return [
        el('div', {class: 'controls'},
           choice(
               'front-latency', 'latency', FRONTS.map((name) => [name, withUnit(name)]), latency,
               (name) => {
                   latency = name;
                   draw();
               })),
        holder
    ];
}

function showCapacities() {
    if (!capacities.length) return;
    const host = el('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Capacities'}),
          charts = el('div', {});
    section(
        'capacities', 'Capacity',
        el('p', {class: 'note'}, 'The highest rate that meets the objectives. A head sorts.',
           hasPrices ? '' : ' Without prices a cost is GPU time.'),
        host, charts,
        data.searches.map(
            (search) => search.config ? el('details', {}, el('summary', {}, `Configuration of ${search.name}`),
                                           el('pre', {tabindex: 0}, search.config)) :
                                        null));
    new Table(host, `${capacities.length} deployments`, capacityColumns(), capacities, null);
    charts.append(...capacityChart(), ...(capacities.length > 1 ? frontChart() : []));
}
