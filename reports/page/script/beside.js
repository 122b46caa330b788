/* Two runs side by side: differences with their intervals, and simulated against recorded. */

/* ---- differences ---- */

/* A row of the data by name. */
function differenceOf([values, metric, byRequest, pairs, samples, base, other, difference, half, p, lower, higher]) {
    return {
        values,
        metric,
        byRequest,
        pairs,
        samples,
        base,
        other,
        difference,
        half,
        p,
        lower,
        higher,
        sure: half !== null && Math.abs(difference) > half
    };
}

const metricName = (row) => `${row.metric}${row.byRequest ? ' by request' : ''}`;

function differenceColumns(keys) {
    const scaled = (name, label, signed) => ({
        name,
        label,
        number: true,
        value: (row) => row[name],
        sure: (row) => name === 'difference' && row.sure,
        text: (row) => row[name] === null ?
            '-' :
            `${signed && row[name] > 0 ? '+' : ''}${digits(row[name] * metricOf(row.metric).scale)}`
    });
    return [
        {name: 'point', label: keys.map(shortKey).join(', ') || 'run', value: (row) => row.values.join(', ') || 'all'},
        {
            name: 'metric',
            label: 'metric',
            value: metricName,
            text: (row) => `${withUnit(row.metric)}${row.byRequest ? ', request by request' : ''}`
        },
        scaled('base', 'base'), scaled('other', 'other'), scaled('difference', 'difference', true),
        scaled('half', '± 95%'), {
            name: 'relative',
            label: 'relative',
            number: true,
            value: (row) => row.base ? row.difference / Math.abs(row.base) : null,
            text: (row) =>
                row.base ? `${row.difference > 0 ? '+' : ''}${digits(row.difference / Math.abs(row.base) * 100)}%` : '-'
        },
        {name: 'p', label: 'p', number: true, value: (row) => row.p, text: (row) => digits(row.p)},
        {name: 'pairs', label: 'pairs', number: true, value: (row) => row.pairs}
    ];
}

function showDifferences() {
    const all = data.differences;
    if (!all.length) return;
    const host = el('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Differences'}),
          {figure: holder, chart} = figure('Other - base, with the 95% interval.'),
          why = el('p', {id: 'not-comparable'});
    let chosen = 0, metric = 'mean_ttft_s';
    const metrics = [...new Set(all.flatMap((of) => of.rows.map((row) => metricName(differenceOf(row)))))];
    const draw = () => {
        const of = all[chosen], list = of.rows.map(differenceOf),
              drawn = list.filter((row) => metricName(row) === metric);
        why.textContent = of.why ? `Not comparable: ${of.why}` :
                                   `base: ${of.base}, other: ${of.other}. Bold where the interval leaves out zero.`;
        holder.hidden = host.hidden = Boolean(of.why);
        if (of.why) return;
        new Table(host, `${of.other} - ${of.base}`, differenceColumns(of.keys), list);
        if (drawn.length) drawDifferences(chart, of, drawn);
    };
    section(
        'differences', 'Differences',
        el('p', {class: 'note'},
           'What inflight compare finds: points of the same swept values, paired by replication or request by request.'),
        el('div', {class: 'controls'},
           choice(
               'comparison', 'comparison', all.map((of, i) => [i, `${of.other} - ${of.base}`]), 0,
               (value) => {
                   chosen = Number(value);
                   draw();
               }),
           choice(
               'difference-metric', 'chart',
               metrics.map(
                   (name) =>
                       [name,
                        withUnit(name.replace(' by request', '')) +
                            (name.endsWith('request') ? ', request by request' : '')]),
               metric,
               (name) => {
                   metric = name;
                   draw();
               })),
        why, holder, host);
    draw();
}

function drawDifferences(chart, of, drawn) {
    const rate = of.keys.findIndex(isRate), scale = metricOf(drawn[0].metric).scale,
          rest = (row) => row.values.filter((_, k) => k !== rate).join(', ');
    const names = [...new Set(drawn.map(rest))];
    chart.draw({
        title: `Difference of ${metricOf(drawn[0].metric).label}`,
        x: {label: rate < 0 ? 'point' : OFFERED},
        y: {label: withUnit(drawn[0].metric)},
        height: 260,
        series: [
            ...names.map(
                (name, style) => ({
                    name: name || `${of.other} - ${of.base}`,
                    style,
                    dots: true,
                    line: rate >= 0,
                    points: drawn.filter((row) => rest(row) === name)
                                .map((row, i) => ({
                                         x: rate < 0 ? i : Number(row.values[rate]),
                                         y: row.difference * scale,
                                         low: row.half === null ? undefined : (row.difference - row.half) * scale,
                                         high: row.half === null ? undefined : (row.difference + row.half) * scale,
                                         hollow: !row.sure,
                                         text: `${row.values.join(', ')}\n${digits(row.difference * scale)} ± ${
                                             digits(row.half === null ? NaN : row.half * scale)} ${
                                             metricOf(row.metric).unit}`
                                     }))
                })),
            {
                name: 'no difference',
                style: 7,
                line: true,
                points: [...new Set(drawn.map((row, i) => rate < 0 ? i : Number(row.values[rate])))]
                            .sort((a, b) => a - b)
                            .map((x) => ({x, y: 0}))
            }
        ]
    });
}

/* ---- simulated against recorded ---- */

const SIDES = ['simulated', 'measured'];

function column(table, name) {
    const at = table.columns.indexOf(name);
    return at < 0 ? [] : table.rows.map((row) => row[at]);
}

function findingColumns(table) {
    const at = (name) => table.columns.indexOf(name), value = (name) => (row) => row[at(name)],
          isShare = (row) => row[at('statistic')].includes('relative') || !row[at('metric')].endsWith('_s');
    const number = (name, label) => ({
        name,
        label,
        number: true,
        value: value(name),
        text: (row) => row[at(name)] === null ? '-' :
            isShare(row)                      ? digits(row[at(name)]) :
                                                digits(row[at(name)])
    });
    return [
        {name: 'metric', label: 'metric', value: value('metric')},
        {name: 'statistic', label: 'statistic', value: value('statistic')}, number('simulated', 'simulated'),
        number('measured', 'measured'), number('error', 'error'), {
            name: 'relative_error',
            label: 'relative',
            number: true,
            value: value('relative_error'),
            text: (row) => row[at('relative_error')] === null ? '-' : `${digits(row[at('relative_error')] * 100)}%`
        },
        number('n', 'samples')
    ];
}

function recordedCharts(recorded) {
    const curves = figure('Distributions of both sides.'),
          pairs = figure('Each pair of requests; on the line both sides agree.');
    let metric = 'ttft_s';
    const draw = () => {
        const of = metricOf(metric);
        if (recorded.curves)
            curves.chart.draw({
                title: `Distribution of ${of.label}, simulated and measured`,
                x: {label: withUnit(metric), log: true},
                y: {label: 'share at or below (%)', min: 0, max: 100},
                height: 300,
                series: SIDES.map(
                    (side, style) => ({
                        name: side,
                        style,
                        step: true,
                        points: column(recorded.curves, `${side}_${metric}`).map((x, i) => ({
                                                                                     x: x === null ? NaN : x * of.scale,
                                                                                     y: recorded.curves.rows[i][0] * 100
                                                                                 }))
                    }))
            });
        if (recorded.pairs) {
            const [simulated, measured] = SIDES.map(
                (side) => column(recorded.pairs, `${side}_${metric}`)
                              .map((value) => value === null ? NaN : value * of.scale)),
                              ids = column(recorded.pairs, 'request_id');
            const [low, high] = seenEnds([...simulated, ...measured].filter((value) => value > 0));
            pairs.chart.draw({
                title: `${of.label} of each request, simulated against measured`,
                x: {label: `measured, ${withUnit(metric)}`, log: true},
                y: {label: `simulated, ${withUnit(metric)}`, log: true},
                height: 300,
                series: [
                    {
                        name: 'requests',
                        style: 0,
                        dots: true,
                        small: true,
                        points: ids.map((id, i) => ({
                                            x: measured[i],
                                            y: simulated[i],
                                            text: `request ${id}\nsimulated ${digits(simulated[i])}\nmeasured ${
                                                digits(measured[i])}`
                                        }))
                    },
                    {name: 'equal', style: 7, line: true, points: [{x: low, y: low}, {x: high, y: high}]}
                ]
            });
        }
    };
    return {
        draw,
        choose: (name) => {
            metric = name;
            draw();
        },
        figures: [recorded.curves ? curves.figure : null, recorded.pairs ? pairs.figure : null]
    };
}

function showRecorded() {
    data.runs.filter((run) => run.recorded).forEach((run, i) => {
        const charts = recordedCharts(run.recorded),
              host =
                  el('div', {class: 'wide', tabindex: 0, role: 'region', 'aria-label': 'Simulated against recorded'}),
              {findings} = run.recorded;
        section(
            i ? `recorded-${i}` : 'recorded',
            severalRuns ? `Simulated against recorded: ${run.title}` : 'Simulated against recorded',
            el('p', {class: 'note'},
               'What inflight validate has written. Errors are simulated - measured; relative ones divide by the measured value. Times in seconds.'),
            el('div', {class: 'controls'},
               choice(
                   `recorded-metric-${i}`, 'latency',
                   ['ttft_s', 'tpot_s', 'e2e_s'].map((name) => [name, withUnit(name)]), 'ttft_s', charts.choose)),
            el('div', {class: 'charts'}, charts.figures), host);
        charts.draw();
        if (findings) new Table(host, 'validation.csv', findingColumns(findings), findings.rows);
    });
}
