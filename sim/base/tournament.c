#include "base/tournament.h"

#include <stdlib.h>

#include "inflight/error.h"

int tournament_create(struct tournament *tournament, uint32_t n)
{
    uint32_t n_leaves = 1;
    while (n_leaves < n)
        n_leaves *= 2;
    *tournament = (struct tournament){.n = n, .n_leaves = n_leaves};
    tournament->key = malloc(n_leaves * sizeof *tournament->key);
    tournament->winner = malloc(2 * (size_t)n_leaves * sizeof *tournament->winner);
    if (!tournament->key || !tournament->winner) {
        tournament_destroy(tournament);
        return IFL_E_NOMEM;
    }
    for (uint32_t i = 0; i < n_leaves; i++) {
        tournament->key[i] = INT64_MAX;
        tournament->winner[(size_t)n_leaves + i] = i;
    }
    for (uint32_t node = n_leaves - 1; node > 0; node--)
        tournament->winner[node] = tournament->winner[(size_t)2 * node];
    return 0;
}

void tournament_destroy(struct tournament *tournament)
{
    free(tournament->key);
    free(tournament->winner);
    *tournament = (struct tournament){0};
}

/* The winner so far goes up with its key, so that a match reads no other key than that of the
 * sibling. */
IFL_HOT void tournament_set(struct tournament *tournament, uint32_t i, int64_t key)
{
    ifl_assert(i < tournament->n);
    uint32_t first = i, *winner = tournament->winner;
    tournament->key[i] = key;
    for (uint32_t node = tournament->n_leaves + i; node > 1; node /= 2) {
        const uint32_t other = winner[node ^ 1], was = winner[node / 2];
        const int64_t others = tournament->key[other];
        const bool loses = others < key || (others == key && other < first);
        first = loses ? other : first;
        key = loses ? others : key;
        winner[node / 2] = first;
        if (first == was && was != i)
            return; /* what i lost against before, it loses against again */
    }
}

/* a or b; either may be n, which is none. */
static uint32_t match(const struct tournament *tournament, uint32_t a, uint32_t b)
{
    if (a == tournament->n || b == tournament->n)
        return a == tournament->n ? b : a;
    return tournament->key[b] < tournament->key[a] ? b : a;
}

/* The nodes that cover the span exactly, from its two ends inwards. */
uint32_t tournament_first_of(const struct tournament *tournament, uint32_t from, uint32_t to)
{
    ifl_assert(from <= to && to <= tournament->n);
    if (from == 0 && to == tournament->n)
        return tournament_first(tournament);
    uint32_t low = tournament->n, high = tournament->n;
    uint32_t left = tournament->n_leaves + from, right = tournament->n_leaves + to;
    for (; left < right; left /= 2, right /= 2) {
        if (left % 2 == 1)
            low = match(tournament, low, tournament->winner[left++]);
        if (right % 2 == 1)
            high = match(tournament, tournament->winner[--right], high);
    }
    return match(tournament, low, high);
}
