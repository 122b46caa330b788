/* Elements, sections and tables. */

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {}))
        if (name.startsWith('on'))
            element.addEventListener(name.slice(2), value);
        else if (value === true)
            element.setAttribute(name, '');
        else if (value !== false && value !== null && value !== undefined)
            element.setAttribute(name, value);
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

const say = (text) => {
    document.getElementById('live').textContent = text;
};

/* A section with a heading, listed in the contents. */
function section(id, title, ...children) {
    const made =
        el('section', {id, 'aria-labelledby': `${id}-title`}, el('h2', {id: `${id}-title`}, title), ...children);
    document.getElementById('main').append(made);
    document.getElementById('contents').append(el('a', {href: `#${id}`}, title));
    return made;
}

/* A list to choose from: [[value, text], ...]. */
function choice(id, label, options, chosen, onChoose) {
    const list =
        el('select', {id, onchange: () => onChoose(list.value)},
           options.map(([value, text]) => el('option', {value, selected: String(value) === String(chosen)}, text)));
    return el('label', {for: id
    }, label, list);
}

function tick(id, label, checked, onTick) {
    const box = el('input', {type: 'checkbox', id, checked, onchange: () => onTick(box.checked)});
    return el('label', {for: id
    }, box, label);
}

/* ---- tables ---- */

const MOST_ROWS = 500;

function compare(a, b) {
    const none = (value) => value === null || value === undefined || Number.isNaN(value) || value === '';
    if (none(a) || none(b)) return none(a) - none(b);
    const x = Number(a), y = Number(b);
    return Number.isNaN(x) || Number.isNaN(y) ? String(a).localeCompare(String(b)) : x - y;
}

/* A table that is sorted by a click on a head. columns: [{name, label, number, value(row), text(row), sure(row)}]; the
 * first is the row's head, a button if there is onRow. */
class Table {
    constructor(host, caption, columns, tableRows, onRow) {
        Object.assign(this, {host, caption, columns, tableRows, onRow, sortedBy: null, rising: true, current: null});
        this.draw();
    }

    sort(column) {
        this.rising = this.sortedBy === column ? !this.rising : true;
        this.sortedBy = column;
        this.draw();
        this.host.querySelector(`button[data-column="${CSS.escape(column.name)}"]`).focus();
        say(`sorted by ${column.label}, ${this.rising ? 'rising' : 'falling'}`);
    }

    head(column) {
        const sorted = this.sortedBy === column;
        return el(
            'th', {
                scope: 'col',
                class: column.number && 'number',
                'aria-sort': sorted ? (this.rising ? 'ascending' : 'descending') : null
            },
            el('button', {type: 'button', 'data-column': column.name, onclick: () => this.sort(column)}, column.label,
               sorted ? (this.rising ? ' ▲' : ' ▼') : ''));
    }

    cell(row, column, isHead) {
        const value = column.value(row), text = column.text ? column.text(row) : String(value === null ? '-' : value);
        const inside =
            isHead && this.onRow ? el('button', {type: 'button', onclick: () => this.onRow(row)}, text) : text;
        return el(
            isHead ? 'th' : 'td', {
                scope: isHead && 'row',
                class:
                    [column.number && 'number', column.sure && column.sure(row) && 'sure'].filter(Boolean).join(' ') ||
                    null,
                'data-column': column.name,
                'data-value': value === null || value === undefined ? '' : value,
                title: column.number && typeof value === 'number' ? String(value) : null,
            },
            inside);
    }

    draw() {
        const order = [...this.tableRows];
        if (this.sortedBy)
            order.sort((a, b) => (this.rising ? 1 : -1) * compare(this.sortedBy.value(a), this.sortedBy.value(b)));
        const lines = order.slice(0, MOST_ROWS)
                          .map(
                              (row) =>
                                  el('tr', {'aria-current': row === this.current ? 'true' : null},
                                     this.columns.map((column, i) => this.cell(row, column, i === 0))));
        const cut = order.length > MOST_ROWS ? `; the first ${MOST_ROWS} of ${order.length} rows in this order` : '';
        this.host.replaceChildren(
            el('table', {}, el('caption', {}, this.caption + cut),
               el('thead', {}, el('tr', {}, this.columns.map((column) => this.head(column)))), el('tbody', {}, lines)));
    }
}

/* A small table without sorting: heads, and rows of texts of which the first is the row's head. */
function plainTable(caption, heads, lines) {
    return el(
        'div', {class: 'plain', tabindex: 0, role: 'region', 'aria-label': caption},
        el('table', {}, el('caption', {}, caption),
           el('thead', {}, el('tr', {}, heads.map((head, i) => el('th', {scope: 'col', class: i && 'number'}, head)))),
           el('tbody', {},
              lines.map(
                  (cells) => el(
                      'tr', {},
                      cells.map(
                          (cell, i) => el(i ? 'td' : 'th', {scope: i ? null : 'row', class: i && 'number'}, cell)))))));
}
