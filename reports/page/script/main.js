/* The page: its sections from above to below, the point shown in detail, and the theme. */

function kept(name, value) {
    try { /* a browser may keep nothing for a file */
        if (value !== undefined) localStorage.setItem(name, value);
        return localStorage.getItem(name);
    } catch (refused) {
        return null;
    }
}

function showTheme(theme) {
    document.documentElement.dataset.theme = theme;
    document.getElementById('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
}

function setUpTheme() {
    const system = matchMedia('(prefers-color-scheme: dark)'), fromSystem = () => system.matches ? 'dark' : 'light';
    showTheme(kept('inflight-theme') || fromSystem());
    system.addEventListener('change', () => kept('inflight-theme') || showTheme(fromSystem()));
    document.getElementById('theme').addEventListener('click', () => {
        const theme = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
        kept('inflight-theme', theme);
        showTheme(theme);
        say(`${theme} colours`);
    });
}

function showChosen() {
    const list = choice(
        'point', 'shown in detail', points.map((point, i) => [i, point.label]), 0,
        (value) => choosePoint(Number(value)));
    document.getElementById('main').append(el('div', {class: 'sticky controls'}, list));
    whenChanged('point', () => {
        document.getElementById('point').value = state.point;
    });
}

/* In the middle of the rates, as figures choose. */
function firstPoint() {
    const rates = [...new Set(rows.map((row) => row.rate))].sort((a, b) => a - b),
          middle = rates[Math.floor((rates.length - 1) / 2)];
    const row = rows.find((of) => of.rate === middle) || rows[0];
    return row ? Math.max(0, pointOf(row)) : -1;
}

function showRuns() {
    showFlown();
    showSummary();
    showLoad();
    showChosen();
    showDistributions();
    showTime();
    showRequests();
    showSchedule();
    showDifferences();
    showRecorded();
    choosePoint(firstPoint());
}

function build() {
    const names = [...data.runs.map((run) => run.title), ...data.searches.map((search) => search.name)].join(', ');
    document.title = `${names} - inflight`;
    document.getElementById('title').textContent = names;
    document.getElementById('made').textContent = [
        `inflight ${data.version}`,
        data.runs.length ? `${data.runs.length} run${severalRuns ? 's' : ''}, ${rows.length} points` : null,
        capacities.length ? `${capacities.length} deployments searched for their capacity` : null
    ].filter(Boolean).join(': ');
    setUpTheme();
    if (data.runs.length) showRuns();
    showCapacities();
    say('');
    document.documentElement.dataset.ready = 'yes';
}
build();
