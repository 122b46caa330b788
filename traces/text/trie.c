/* A trie of texts: an open hash table of edges. */
#include "text/text.h"

#include <string.h>

#define EMPTY UINT32_MAX

enum { MOST_NODES = 1 << 23 };

static struct text_edge *slot_of(const struct text_trie *trie, uint32_t key)
{
    size_t slot = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (trie->n_slots - 1);
    while (trie->edges[slot].key != EMPTY && trie->edges[slot].key != key)
        slot = (slot + 1) & (trie->n_slots - 1);
    return &trie->edges[slot];
}

static uint32_t key_of(uint32_t node, char letter)
{
    return node << 8 | (unsigned char)letter;
}

uint32_t text_trie_next(const struct text_trie *trie, uint32_t node, char letter)
{
    if (node == 0)
        return trie->first[(unsigned char)letter];
    const struct text_edge *edge = slot_of(trie, key_of(node, letter));
    return edge->key == EMPTY ? 0 : edge->to;
}

static int grow(struct text_trie *trie, struct ifl_error *error)
{
    struct text_trie larger = *trie;
    larger.n_slots = trie->n_slots > 0 ? 2 * trie->n_slots : 1024;
    larger.edges = malloc(larger.n_slots * sizeof *larger.edges);
    if (!larger.edges)
        return ifl_fail_nomem(error);
    memset(larger.edges, 0xff, larger.n_slots * sizeof *larger.edges);
    for (size_t i = 0; i < trie->n_slots; i++)
        if (trie->edges[i].key != EMPTY)
            *slot_of(&larger, trie->edges[i].key) = trie->edges[i];
    free(trie->edges);
    *trie = larger;
    return 0;
}

static int add_node(struct text_trie *trie, uint32_t *node, struct ifl_error *error)
{
    if (trie->n == MOST_NODES)
        return ifl_fail(error, IFL_E_INPUT, "a vocabulary of more than %d bytes", MOST_NODES);
    if (trace_reserve(&trie->nodes, &trie->cap, trie->n + 1, sizeof *trie->nodes, error) < 0 ||
        (2 * (trie->n + 1) > trie->n_slots && grow(trie, error) < 0))
        return error->code;
    *node = (uint32_t)trie->n;
    trie->nodes[trie->n++] = (struct text_node){.id = TEXT_NO_ID};
    return 0;
}

static int step(struct text_trie *trie, uint32_t *node, char letter, struct ifl_error *error)
{
    const uint32_t from = *node, to = text_trie_next(trie, from, letter);
    int rc = 0;
    if (to != 0) {
        *node = to;
        return 0;
    }
    rc = add_node(trie, node, error);
    if (rc < 0)
        return rc;
    if (from == 0)
        trie->first[(unsigned char)letter] = *node;
    else
        *slot_of(trie, key_of(from, letter)) = (struct text_edge){key_of(from, letter), *node};
    return 0;
}

int text_trie_add(struct text_trie *trie, const char *text, size_t n, uint32_t id, double score,
                  struct ifl_error *error)
{
    uint32_t node = 0;
    int rc = trie->n == 0 ? add_node(trie, &node, error) : 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = step(trie, &node, text[i], error);
    if (rc == 0)
        trie->nodes[node] = (struct text_node){score, id};
    return rc;
}

void text_trie_free(struct text_trie *trie)
{
    free(trie->edges);
    free(trie->nodes);
    *trie = (struct text_trie){0};
}
