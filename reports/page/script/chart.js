/* Charts of lines and dots in SVG. Each can be read with the pointer, and with the keyboard: the left and right keys go
 * along a series, up and down to another, Enter chooses. What stands at the cursor is said aloud. */

const DASHES = ['', '7 3', '2 3', '9 3 2 3', '5 2', '1 3', '12 4', '3 6'];
const MARKS = ['circle', 'square', 'triangle', 'diamond', 'cross', 'circle', 'square', 'triangle'];
const colour = (index) => `var(--c${index % 8})`;

function mark(index, x, y, size, hollow) {
    const style = {fill: hollow ? 'var(--ground)' : colour(index), stroke: colour(index), 'stroke-width': 1.5};
    const paths = {
        square: `M${x - size},${y - size}h${2 * size}v${2 * size}h${- 2 * size}z`,
        triangle: `M${x},${y - size}l${size},${2 * size}h${- 2 * size}z`,
        diamond: `M${x},${y - 1.3 * size}l${1.3 * size},${1.3 * size}l${- 1.3 * size},${1.3 * size}l${- 1.3 * size},${
            - 1.3 * size}z`,
        cross: `M${x - size},${y - size}l${2 * size},${2 * size}m0,${- 2 * size}l${- 2 * size},${2 * size}`,
    };
    const shape = MARKS[index % 8];
    return shape === 'circle' ? svg('circle', {cx: x, cy: y, r: size, ...style}) :
                                svg('path', {d: paths[shape], ...style});
}

/* ---- axes ---- */

function niceStep(span, most) {
    const power = 10 ** Math.floor(Math.log10(span / most));
    return [1, 2, 5, 10].map((times) => times * power).find((step) => span / step <= most) || 10 * power;
}

function linearTicks(low, high, most) {
    const step = niceStep(high - low, most), ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
        ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
}

function logTicks(low, high) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
        for (const times of high / low > 300 ? [1] : [1, 2, 5])
            if (times * 10 ** power >= low * 0.999 && times * 10 ** power <= high * 1.001)
                ticks.push(Number((times * 10 ** power).toPrecision(6)));
    return ticks;
}

const tickText = (value) =>
    value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential() : String(value);

/* The ends of an axis with one value: it stands in the middle, unless an end is given. */
function aroundOne(of, value) {
    if (of.log) return [value / 2, value * 2];
    if (value === 0 || of.min !== undefined || of.max !== undefined) return [value, value + (Math.abs(value) || 1)];
    return value > 0 ? [0, 2 * value] : [2 * value, 0];
}

/* of: {label, log, min, max}; values: what is to be seen; room: pixels. */
function axisOf(of, values, room) {
    const seen = values.filter((value) => Number.isFinite(value) && (!of.log || value > 0));
    let low = of.min !== undefined ? of.min : Math.min(...seenEnds(seen)),
        high = of.max !== undefined ? of.max : Math.max(...seenEnds(seen));
    if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = of.log ? [0.1, 1] : [0, 1];
    if (!(high > low)) [low, high] = aroundOne(of, low);
    const at = of.log ? (value) => room * Math.log(value / low) / Math.log(high / low) :
                        (value) => room * (value - low) / (high - low);
    const ticks = of.log ? logTicks(low, high) : linearTicks(low, high, Math.max(2, room / 75));
    return {low, high, at, ticks, digits: tickText, label: of.label};
}

/* Math.min takes no hundred thousand arguments. */
function seenEnds(seen) {
    let low = Infinity, high = -Infinity;
    for (const value of seen) {
        if (value < low) low = value;
        if (value > high) high = value;
    }
    return [low, high];
}

/* ---- a chart ---- */

const MARGIN = {
    left: 62,
    right: 14,
    top: 8,
    bottom: 40
};

/* spec: {title, x, y, height, series, zero, onPick, note}. A series is {name, style, line, step, dots, small, points};
 * a point is {x, y, low, high, text, hollow, pick}. */
class Chart {
    constructor(host) {
        this.host = host;
        this.cursor = null;
        new ResizeObserver(() => this.spec && host.clientWidth !== this.drawnWidth && this.draw(this.spec))
            .observe(host);
    }

    draw(spec) {
        this.spec = spec;
        this.cursor = null;
        this.drawnWidth = this.host.clientWidth;
        this.width = Math.max(240, this.drawnWidth || 600);
        this.height = spec.height || 280;
        const all = spec.series.flatMap((of) => of.points);
        const ys = all.flatMap((point) => [point.y, point.low, point.high].filter((value) => value !== undefined));
        this.x = axisOf(spec.x, all.map((point) => point.x), this.width - MARGIN.left - MARGIN.right);
        this.y = axisOf(
            spec.zero && !spec.y.log ? {min: 0, ...spec.y} : spec.y, ys, this.height - MARGIN.top - MARGIN.bottom);
        this.root = svg('svg', {
            viewBox: `0 0 ${this.width} ${this.height}`,
            height: this.height,
            tabindex: 0,
            role: 'img',
            'aria-label':
                `${spec.title}. Chart of ${spec.y.label} against ${spec.x.label}, ${spec.series.length} series: ` +
                `${spec.series.map((of) => of.name).join(', ')}. Arrow keys read its values.`,
            onkeydown: (event) => this.key(event),
            onpointermove: (event) => this.hover(event),
            onpointerleave: () => this.leave(),
            onblur: () => this.leave(),
            onclick: (event) => this.click(event),
        });
        this.drawAxes();
        spec.series.forEach((of) => this.drawSeries(of));
        this.ring = svg('g', {});
        this.root.append(this.ring);
        this.host.replaceChildren(this.root, ...(spec.series.length > 1 ? [this.legend()] : []));
    }

    px(value) { return MARGIN.left + this.x.at(value); }

    py(value) { return this.height - MARGIN.bottom - this.y.at(value); }

    drawAxes() {
        const bottom = this.height - MARGIN.bottom, right = this.width - MARGIN.right;
        for (const tickAt of this.y.ticks)
            this.root.append(
                svg('line', {class: 'grid', x1: MARGIN.left, x2: right, y1: this.py(tickAt), y2: this.py(tickAt)}),
                svg('text', {x: MARGIN.left - 6, y: this.py(tickAt) + 4, 'text-anchor': 'end'}, this.y.digits(tickAt)));
        for (const tickAt of this.x.ticks)
            this.root.append(
                svg('line', {class: 'axis', x1: this.px(tickAt), x2: this.px(tickAt), y1: bottom, y2: bottom + 4}),
                svg('text', {x: this.px(tickAt), y: bottom + 17, 'text-anchor': 'middle'}, this.x.digits(tickAt)));
        this.root.append(
            svg('path', {class: 'axis', d: `M${MARGIN.left},${MARGIN.top}V${bottom}H${right}`}),
            svg('text', {x: (MARGIN.left + right) / 2, y: this.height - 4, 'text-anchor': 'middle'}, this.x.label),
            svg('text', {transform: `translate(12,${(MARGIN.top + bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle'},
                this.y.label));
    }

    visible(point) {
        return Number.isFinite(point.x) && Number.isFinite(point.y) && (!this.spec.y.log || point.y > 0) &&
            (!this.spec.x.log || point.x > 0);
    }

    drawSeries(of) {
        const seen = of.points.filter((point) => this.visible(point));
        const path = seen.map((point, i) => {
                             const x = this.px(point.x).toFixed(1), y = this.py(point.y).toFixed(1);
                             return i === 0 ? `M${x},${y}` : of.step ? `H${x}V${y}` : `L${x},${y}`;
                         })
                         .join('');
        if (of.line || of.step)
            this.root.append(svg('path', {
                d: path,
                fill: 'none',
                stroke: colour(of.style),
                'stroke-width': 1.8,
                'stroke-dasharray': DASHES[of.style % 8] || null,
                'stroke-linejoin': 'round'
            }));
        for (const point of seen) {
            if (point.low !== undefined && Number.isFinite(point.low))
                this.root.append(svg('line', {
                    x1: this.px(point.x),
                    x2: this.px(point.x),
                    y1: this.py(point.low),
                    y2: this.py(point.high),
                    stroke: colour(of.style),
                    'stroke-width': 1.5
                }));
            if (of.dots)
                this.root.append(mark(of.style, this.px(point.x), this.py(point.y), of.small ? 2 : 4, point.hollow));
        }
    }

    legend() {
        return el(
            'ul', {class: 'legend'},
            this.spec.series.map(
                (of) =>
                    el('li', {},
                       svg('svg', {viewBox: '0 0 34 12', 'aria-hidden': 'true'},
                           of.line || of.step ? svg('line', {
                               x1: 0,
                               x2: 34,
                               y1: 6,
                               y2: 6,
                               stroke: colour(of.style),
                               'stroke-width': 2,
                               'stroke-dasharray': DASHES[of.style % 8] || null
                           }) :
                                                '',
                           of.dots ? mark(of.style, 17, 6, 4, of.hollow) : ''),
                       of.name)));
    }

    /* ---- reading values ---- */

    nearest(event) {
        const box = this.root.getBoundingClientRect(), scale = this.width / box.width;
        const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
        let best = null, least = Infinity;
        this.spec.series.forEach((of, s) => of.points.forEach((point, i) => {
            if (!this.visible(point)) return;
            /* A curve is read at the pointer's abscissa. */
            const dx = this.px(point.x) - x, dy = (this.py(point.y) - y) * (of.dots ? 1 : 0.2), far = dx * dx + dy * dy;
            if (far < least) [best, least] = [[s, i], far];
        }));
        return best;
    }

    show([s, i], aloud) {
        const of = this.spec.series[s], point = of.points[i], x = this.px(point.x), y = this.py(point.y);
        const text = point.text ||
            `${of.name}\n${this.spec.x.label}: ${digits(point.x)}\n${this.spec.y.label}: ${digits(point.y)}`;
        this.cursor = [s, i];
        this.ring.replaceChildren(svg('circle', {class: 'ring', cx: x, cy: y, r: 7}));
        const box = this.root.getBoundingClientRect(), tip = document.getElementById('tip'),
              scale = box.width / this.width;
        tip.textContent = text;
        tip.hidden = false;
        const left = Math.min(box.left + x * scale + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
        tip.style.left = `${Math.max(4, left) + window.scrollX}px`;
        tip.style.top = `${box.top + y * scale + window.scrollY - tip.offsetHeight - 12}px`;
        if (aloud) say(text.replace(/\n/g, ', '));
    }

    hover(event) {
        const found = this.nearest(event);
        if (found) this.show(found, false);
    }

    leave() {
        this.ring.replaceChildren();
        document.getElementById('tip').hidden = true;
    }

    click(event) {
        const found = this.nearest(event);
        if (found) this.pick(found);
    }

    pick([s, i]) {
        const point = this.spec.series[s].points[i];
        if (this.spec.onPick && point.pick !== undefined) this.spec.onPick(point.pick);
    }

    move(seriesBy, pointBy) {
        if (!this.cursor)
            return [this.spec.series.findIndex((of) => of.points.some((point) => this.visible(point))), -1, 1];
        const [s, i] = this.cursor, n = this.spec.series.length;
        return seriesBy ? [(s + seriesBy + n) % n, i - 1, 1] : [s, i, pointBy];
    }

    key(event) {
        const moves = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
        if (event.key === 'Enter' && this.cursor) {
            this.pick(this.cursor);
        } else if (event.key in moves) {
            let [s, i, by] = this.move(...moves[event.key]);
            const of = this.spec.series[s];
            if (of) {
                i = Math.min(i, of.points.length - 2 + (by < 0 ? 2 : 0));
                do i += by;
                while (of.points[i] && !this.visible(of.points[i]));
                if (of.points[i]) this.show([s, i], true);
            }
        } else {
            return;
        }
        event.preventDefault();
    }
}

/* A figure with a chart in it: {figure, chart}. */
function figure(caption) {
    const host = el('div', {});
    const made = el('figure', {}, el('figcaption', {}, caption), host);
    return {figure: made, chart: new Chart(host)};
}
