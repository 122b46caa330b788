#include "fleet/link.h"

#include <math.h>
#include <stdlib.h>

#include "inflight/minmax.h"

/* A transfer under way, or a free slot. */
struct link_transfer {
    struct link_load load;
    int64_t begun_ns, latency_ns;
    int64_t alone_ns;   /* that its links would be busy with it alone */
    double left_ns;     /* shared: of alone_ns, as of noted_ns */
    int64_t noted_ns;   /* shared */
    double speed;       /* shared: ns of alone_ns that pass in a ns */
    uint32_t n_changes; /* shared: of its end; events of earlier ends are void */
    bool passed;        /* shared: its bytes are on their way for the latency, off the link */
    struct {
        uint32_t prev, next; /* slots, LINK_NONE at the ends */
    } chain[LINKS_OF_A_PATH];
};

int links_create(struct links *links, uint32_t n, const struct link_spec *spec)
{
    *links = (struct links){.of = calloc(n, sizeof *links->of), .n = n};
    if (!links->of)
        return IFL_E_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        links_set(links, i, spec);
    return 0;
}

void links_set(struct links *links, uint32_t i, const struct link_spec *spec)
{
    ifl_assert(i < links->n && links->slots.n == links->slots.n_free);
    links->of[i] = (struct link){.spec = *spec, .first = LINK_NONE};
}

void links_destroy(struct links *links)
{
    free(links->of);
    free(links->transfers);
    slots_destroy(&links->slots);
    event_heap_destroy(&links->ends);
    *links = (struct links){0};
}

/* ---- what a transfer takes ---- */

#define FOR_EACH_LINK(i, load)                                                                     \
    for (int i = 0; i < LINKS_OF_A_PATH && (load)->path[i] != LINK_NONE; i++)

static enum link_sharing sharing_of(const struct links *links, const struct link_load *load)
{
    return links->of[load->path[0]].spec.sharing;
}

/* The least rate on the path, if each link divides its own by its number of transfers or not; 0:
 * bytes take no time. */
static double rate_of(const struct links *links, const struct link_load *load, bool divided)
{
    double least = INFINITY;
    FOR_EACH_LINK(i, load)
    {
        const struct link *link = &links->of[load->path[i]];
        if (link->spec.bytes_per_s > 0)
            least = fmin(least, link->spec.bytes_per_s / (divided ? link->n_going : 1));
    }
    return isinf(least) ? 0 : least;
}

/* Times beyond the last one that a run knows are as good as that. */
static int64_t whole_ns(double ns)
{
    return ns < (double)IFL_LAST_NS ? llround(ns) : IFL_LAST_NS;
}

static int64_t busy_ns(const struct links *links, const struct link_load *load, double rate)
{
    int64_t piece_ns = 0;
    FOR_EACH_LINK(i, load)
    piece_ns = ifl_max(piece_ns, links->of[load->path[i]].spec.piece_ns);
    const double bytes_ns = rate > 0 ? (double)load->n_bytes / rate * 1e9 : 0;
    return whole_ns((1 - load->passed) * (bytes_ns + (double)load->n_pieces * (double)piece_ns));
}

static int64_t latency_of(const struct links *links, const struct link_load *load)
{
    int64_t ns = 0;
    FOR_EACH_LINK(i, load)
    ns = ifl_max(ns, links->of[load->path[i]].spec.latency_ns);
    return ns;
}

int64_t links_busy_ns(const struct links *links, const struct link_load *load)
{
    return busy_ns(links, load, rate_of(links, load, false));
}

int64_t links_alone_ns(const struct links *links, const struct link_load *load)
{
    return ifl_later_ns(latency_of(links, load), links_busy_ns(links, load));
}

static int expect_end(struct links *links, uint32_t slot, int64_t end_ns)
{
    const struct link_transfer *t = &links->transfers[slot];
    return event_push(&links->ends, end_ns, t->load.rank, (uint64_t)slot << 32 | t->n_changes);
}

/* ---- processor sharing ---- */

static int place_on(const struct link_transfer *t, uint32_t link)
{
    return t->load.path[0] == link ? 0 : 1;
}

static void chain_in(struct links *links, uint32_t slot)
{
    struct link_transfer *t = &links->transfers[slot];
    FOR_EACH_LINK(i, &t->load)
    {
        struct link *link = &links->of[t->load.path[i]];
        t->chain[i].prev = LINK_NONE;
        t->chain[i].next = link->first;
        if (link->first != LINK_NONE) {
            struct link_transfer *head = &links->transfers[link->first];
            head->chain[place_on(head, t->load.path[i])].prev = slot;
        }
        link->first = slot;
    }
}

static void chain_out(struct links *links, uint32_t slot)
{
    const struct link_transfer *t = &links->transfers[slot];
    FOR_EACH_LINK(i, &t->load)
    {
        const uint32_t at = t->load.path[i], prev = t->chain[i].prev, next = t->chain[i].next;
        struct link_transfer *of = links->transfers;
        if (prev == LINK_NONE)
            links->of[at].first = next;
        else
            of[prev].chain[place_on(&of[prev], at)].next = next;
        if (next != LINK_NONE)
            of[next].chain[place_on(&of[next], at)].prev = prev;
    }
}

/* The transfer has another part of the rate from now on. */
static int note_speed(struct links *links, uint32_t slot, int64_t now_ns)
{
    struct link_transfer *t = &links->transfers[slot];
    const double alone = rate_of(links, &t->load, false);
    const double speed = alone > 0 ? rate_of(links, &t->load, true) / alone : 1;
    if (speed == t->speed)
        return 0;
    t->left_ns = fmax(t->left_ns - (double)(now_ns - t->noted_ns) * t->speed, 0);
    t->noted_ns = now_ns;
    t->speed = speed;
    t->n_changes++;
    return expect_end(links, slot, ifl_later_ns(now_ns, whole_ns(t->left_ns / speed)));
}

/* What goes on the links of that transfer has another part of them. */
static int note_others(struct links *links, const struct link_load *load, int64_t now_ns)
{
    FOR_EACH_LINK(i, load)
    {
        const uint32_t at = load->path[i];
        const struct link_transfer *of = links->transfers;
        for (uint32_t slot = links->of[at].first; slot != LINK_NONE;
             slot = of[slot].chain[place_on(&of[slot], at)].next)
            if (note_speed(links, slot, now_ns) < 0)
                return IFL_E_NOMEM;
    }
    return 0;
}

/* ---- sending ---- */

static int64_t begin_of(const struct links *links, const struct link_load *load)
{
    int64_t at_ns = load->at_ns;
    if (sharing_of(links, load) == LINK_FIFO)
        FOR_EACH_LINK(i, load)
    at_ns = ifl_max(at_ns, links->of[load->path[i]].free_ns);
    return at_ns;
}

static void note_going(struct links *links, const struct link_load *load, int64_t free_ns, int by)
{
    FOR_EACH_LINK(i, load)
    {
        struct link *link = &links->of[load->path[i]];
        ifl_assert(by > 0 || link->n_going > 0);
        link->n_going += (uint32_t)by;
        link->free_ns = ifl_max(link->free_ns, free_ns);
    }
}

int links_send(struct links *links, const struct link_load *load)
{
    ifl_assert(load->path[0] < links->n && load->n_bytes >= 0 && load->n_pieces >= 0);
    ifl_assert(load->path[1] == LINK_NONE || load->path[1] != load->path[0]);
    ifl_assert(load->passed >= 0 && load->passed <= 1);
    if (slots_reserve(&links->slots, &links->transfers, sizeof *links->transfers) < 0)
        return IFL_E_NOMEM;
    const uint32_t slot = slots_take(&links->slots);
    struct link_transfer *t = &links->transfers[slot];
    const enum link_sharing sharing = sharing_of(links, load);
    const int64_t begun_ns = begin_of(links, load);
    *t = (struct link_transfer){.load = *load,
                                .begun_ns = begun_ns,
                                .latency_ns = latency_of(links, load),
                                .alone_ns = busy_ns(links, load, rate_of(links, load, false)),
                                .noted_ns = begun_ns,
                                .n_changes = t->n_changes};
    t->left_ns = (double)t->alone_ns;
    note_going(links, load, sharing == LINK_FIFO ? ifl_later_ns(begun_ns, t->alone_ns) : 0, 1);
    if (sharing == LINK_SHARED) {
        chain_in(links, slot);
        return note_others(links, load, load->at_ns);
    }
    const int64_t passing_ns =
        sharing == LINK_FROZEN ? busy_ns(links, load, rate_of(links, load, true)) : t->alone_ns;
    return expect_end(links, slot, ifl_later_ns(ifl_later_ns(begun_ns, passing_ns), t->latency_ns));
}

/* ---- the end ---- */

/* Events of ends that have changed since are void. */
static bool is_void(const struct links *links, const struct event *event)
{
    return links->transfers[event->payload >> 32].n_changes != (uint32_t)event->payload;
}

static void drop_void(struct links *links)
{
    while (links->ends.n > 0 && is_void(links, &links->ends.of[0]))
        event_pop(&links->ends);
}

/* The last byte has left a shared link: what else goes on it is faster. */
static int leave_shared(struct links *links, uint32_t slot, int64_t now_ns)
{
    struct link_transfer *t = &links->transfers[slot];
    t->passed = true;
    t->n_changes++; /* its events are void */
    note_going(links, &t->load, 0, -1);
    chain_out(links, slot);
    if (note_others(links, &t->load, now_ns) < 0)
        return IFL_E_NOMEM;
    return expect_end(links, slot, ifl_later_ns(now_ns, t->latency_ns));
}

static void end(struct links *links, uint32_t slot, int64_t end_ns, struct link_arrival *arrival)
{
    struct link_transfer *t = &links->transfers[slot];
    *arrival = (struct link_arrival){.sent_ns = t->load.at_ns,
                                     .begun_ns = t->begun_ns,
                                     .end_ns = end_ns,
                                     .alone_ns = ifl_later_ns(t->latency_ns, t->alone_ns),
                                     .tag = t->load.tag};
    if (!t->passed)
        note_going(links, &t->load, 0, -1);
    t->n_changes++;
    slots_give(&links->slots, slot);
}

int links_take(struct links *links, int64_t until_ns, struct link_arrival *arrival)
{
    for (;;) {
        drop_void(links);
        if (links->ends.n == 0 || links_next_ns(links) > until_ns)
            return 0;
        const struct event event = event_pop(&links->ends);
        const uint32_t slot = (uint32_t)(event.payload >> 32);
        const struct link_transfer *t = &links->transfers[slot];
        if (sharing_of(links, &t->load) == LINK_SHARED && !t->passed) {
            if (leave_shared(links, slot, event.at_ns) < 0)
                return IFL_E_NOMEM;
            continue;
        }
        end(links, slot, event.at_ns, arrival);
        drop_void(links);
        return 1;
    }
}
