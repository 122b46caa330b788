/* The least of n keys that change: a tree of matches. Each node has the number of the winner, that
 * is, of the least key below the node. A change therefore costs one match per level, and so does
 * the least key of a span. Of equal keys the lower number wins. */
#ifndef SIM_BASE_TOURNAMENT_H
#define SIM_BASE_TOURNAMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tournament {
    uint32_t n, n_leaves; /* n_leaves: a power of two */
    int64_t *key;         /* [n_leaves], INT64_MAX from n on */
    uint32_t *winner;     /* [2 n_leaves], the root at 1 */
};

/* Creates a tournament of n keys, at least 1, all INT64_MAX. Returns 0 or IFL_E_NOMEM. Zeroed
 * memory is valid for tournament_destroy. */
int tournament_create(struct tournament *tournament, uint32_t n);
void tournament_destroy(struct tournament *tournament);
static inline bool tournament_is_there(const struct tournament *tournament)
{
    return tournament->winner != NULL;
}
void tournament_set(struct tournament *tournament, uint32_t i, int64_t key);
/* tournament_first: the number of the least key. tournament_least: that key. */
static inline uint32_t tournament_first(const struct tournament *tournament)
{
    return tournament->winner[1];
}
static inline int64_t tournament_least(const struct tournament *tournament)
{
    return tournament->key[tournament->winner[1]];
}
/* The number of the least key of [from, to); n: the span is empty. */
uint32_t tournament_first_of(const struct tournament *tournament, uint32_t from, uint32_t to);

#endif
