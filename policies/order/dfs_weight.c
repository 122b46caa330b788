/* Depth first through the cache's tree, heavier branches first: SGLang's dfs-weight (2026-08,
 * python/sglang/srt/managers/schedule_policy.py; Zheng et al., arXiv 2312.07104, section 3).
 *
 * Every waiting request hangs on the node where its longest match ends. The weight of a node is the
 * number of requests that hang on it or below it. Children of a node are visited by weight, the
 * heaviest first; ties go to the child with the earliest request. Requests of a node come after all
 * those below it. So requests that share a branch run together, while the branch is cached. */
#include <gsl/gsl_heapsort.h>
#include <stdlib.h>

#include "inflight/policy.h"

struct node { /* of the tree, number 0 is the root; no branch: 0 as child or sibling */
    uint32_t parent, first_child, next_sibling;
    uint32_t weight;
    const struct ifl_request *earliest; /* earliest request that hangs on the node or below it */
    uint64_t ranking;                   /* number of the last ranking that reset the node */
    int64_t order;                      /* place in the post-order walk */
};

struct sibling {
    uint32_t node, weight;
    const struct ifl_request *earliest;
};

struct branches { /* scratch, [n_blocks + 1] */
    struct node *nodes;
    struct sibling *siblings;
    uint64_t ranking;
};

static struct branches *branches_of(const void *self)
{
    return ifl_state(self);
}

/* ---- the part of the tree on which requests hang ---- */

static bool see(struct branches *b, uint32_t at)
{
    struct node *node = &b->nodes[at];
    if (node->ranking == b->ranking)
        return false;
    *node = (struct node){.ranking = b->ranking};
    return true;
}

static void hear_of(struct node *node, const struct ifl_request *r)
{
    if (!node->earliest || ifl_queued_before(r, node->earliest))
        node->earliest = r;
}

static void hang(struct branches *b, const struct ifl_view *view, const struct ifl_request *r,
                 uint32_t on)
{
    uint32_t at = on;
    for (bool new = see(b, at); new &&at != 0;) {
        const uint32_t above = ifl_above(ifl_plan(view), at);
        new = see(b, above);
        b->nodes[at].parent = above;
        b->nodes[at].next_sibling = b->nodes[above].first_child;
        b->nodes[above].first_child = at;
        at = above;
    }
    b->nodes[on].weight++;
    hear_of(&b->nodes[on], r);
}

/* First node of a post-order walk of the tree below `at`. */
static uint32_t deepest(const struct branches *b, uint32_t at)
{
    while (b->nodes[at].first_child)
        at = b->nodes[at].first_child;
    return at;
}

static uint32_t after(const struct branches *b, uint32_t at)
{
    const uint32_t sibling = b->nodes[at].next_sibling;
    return sibling ? deepest(b, sibling) : b->nodes[at].parent;
}

/* Sums weights up to the root, children before parents; lists the nodes that have siblings. */
static size_t weigh(struct branches *b)
{
    size_t n_siblings = 0;
    for (uint32_t at = deepest(b, 0); at != 0; at = after(b, at)) {
        const struct node *node = &b->nodes[at];
        struct node *parent = &b->nodes[node->parent];
        parent->weight += node->weight;
        hear_of(parent, node->earliest);
        if (parent->first_child != at || node->next_sibling)
            b->siblings[n_siblings++] = (struct sibling){at, node->weight, node->earliest};
    }
    return n_siblings;
}

static int lightest_first(const void *x, const void *y)
{
    const struct sibling *a = x, *b = y;
    if (a->weight != b->weight)
        return a->weight < b->weight ? -1 : 1;
    return ifl_queued_before(b->earliest, a->earliest) ? -1 : 1;
}

/* Nodes are put in front of their siblings, the lightest first: so the heaviest ends up in front.
 */
static void sort_siblings(struct branches *b, size_t n)
{
    gsl_heapsort(b->siblings, n, sizeof *b->siblings, lightest_first);
    for (size_t i = 0; i < n; i++)
        b->nodes[b->nodes[b->siblings[i].node].parent].first_child = 0;
    for (size_t i = 0; i < n; i++) {
        struct node *node = &b->nodes[b->siblings[i].node];
        node->next_sibling = b->nodes[node->parent].first_child;
        b->nodes[node->parent].first_child = b->siblings[i].node;
    }
}

/* ---- the order ---- */

static void number_nodes(struct branches *b)
{
    int64_t n = 0;
    for (uint32_t at = deepest(b, 0); at != 0; at = after(b, at))
        b->nodes[at].order = n++;
    b->nodes[0].order = n;
}

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    struct branches *b = branches_of(self);
    b->ranking++;
    see(b, 0);
    for (size_t i = 0; i < n; i++) {
        const bool matches = ifl_plan(view) && of[i]->state == IFL_WAITING;
        key[i] = matches ? (int64_t)ifl_hit(ifl_plan(view), of[i]).node : 0;
        hang(b, view, of[i], (uint32_t)key[i]);
    }
    sort_siblings(b, weigh(b));
    number_nodes(b);
    for (size_t i = 0; i < n; i++)
        key[i] = b->nodes[key[i]].order;
}

static int init(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    struct branches *b = branches_of(self);
    b->nodes = calloc((size_t)limits->n_blocks + 1, sizeof *b->nodes);
    b->siblings = calloc((size_t)limits->n_blocks + 1, sizeof *b->siblings);
    return b->nodes && b->siblings ? 0 : ifl_fail_nomem(error);
}

static void finish(void *self)
{
    free(branches_of(self)->nodes);
    free(branches_of(self)->siblings);
}

static const struct ifl_order_ops ops = {.rank = rank, .keys = ifl_keys_of_plan};

const struct ifl_policy policy_order_dfs_weight = {
    .kind = IFL_ORDER,
    .name = "dfs-weight",
    .doc = "depth first through the tree of cached prefixes, heavier branches first (SGLang's "
           "dfs-weight)",
    .state_bytes = sizeof(struct branches),
    .init = init,
    .finish = finish,
    .ops.order = &ops,
};
