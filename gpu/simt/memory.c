/* Global memory as a launch that overlaps the one before may see it (simt.h). Loops, not memcpy,
 * and no sanitizer: what is exchanged here is not the kernels' doing. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_REGIONS = 512, CHUNK = 16 };

struct region {
    char *memory, *before; /* before: as the last launch that admitted the next found it */
    size_t n_bytes;
};

/* Bytes that the next launch finds otherwise. */
struct hidden {
    char *memory, *bytes; /* [2][n_bytes] what is exchanged, and what no wait shows, for later */
    size_t n_bytes;
    bool until_end; /* no wait shows them */
};

struct hidden_list {
    struct hidden *of;
    size_t n, cap;
};

static struct region regions[MAX_REGIONS];
static size_t n_regions;
static struct hidden_list hidden, copies; /* copies: of the host, since the last launch */
static bool has_before;

static void *must_have(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "simt: no memory for the contents before a launch\n");
    abort();
}

/* realloc: tests make malloc and calloc fail, of which the shim is no part. */
static char *take(size_t n_bytes)
{
    return must_have(realloc(NULL, n_bytes + 1));
}

static void copy(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static char *hide(struct hidden_list *list, char *memory, size_t n_bytes, bool until_end)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 64;
        list->of = must_have(realloc(list->of, list->cap * sizeof *list->of));
    }
    char *bytes = take(2 * n_bytes);
    list->of[list->n++] = (struct hidden){memory, bytes, n_bytes, until_end};
    return bytes;
}

static void clear(struct hidden_list *list)
{
    while (list->n > 0)
        free(list->of[--list->n].bytes);
}

void simt_memory_add(void *memory, size_t n_bytes)
{
    if (n_regions == MAX_REGIONS) {
        fprintf(stderr, "simt: more than %d arrays in global memory\n", MAX_REGIONS);
        abort();
    }
    regions[n_regions++] = (struct region){memory, NULL, n_bytes};
    simt_fence();
}

void simt_memory_drop(const void *memory)
{
    for (size_t i = 0; i < n_regions; i++)
        if (regions[i].memory == memory) {
            free(regions[i].before);
            regions[i] = regions[--n_regions];
            break;
        }
    simt_fence();
}

void simt_memory_written(void *memory, size_t n_bytes)
{
    char *bytes = hide(&hidden, memory, n_bytes, false);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (char)0xff;
}

void simt_host_writes(const void *memory, size_t n_bytes)
{
    union {
        const void *given;
        char *kept;
    } at = {memory};
    if (has_before)
        copy(hide(&copies, at.kept, n_bytes, true), at.kept, n_bytes);
}

void simt_fence(void)
{
    has_before = false;
    clear(&copies);
}

/* ---- a launch ---- */

static bool differs(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return true;
    return false;
}

static size_t chunk_of(const struct region *r, size_t at)
{
    return r->n_bytes - at < CHUNK ? r->n_bytes - at : CHUNK;
}

/* Stretches that differ from what the last launch found. */
static void hide_region(const struct region *r)
{
    size_t from = 0, n = 0;
    for (size_t at = 0; at < r->n_bytes; at += CHUNK) {
        const bool is_new = differs(r->memory + at, r->before + at, chunk_of(r, at));
        if (is_new && n == 0)
            from = at;
        n = is_new ? at + chunk_of(r, at) - from : n;
        if (n > 0 && (!is_new || at + CHUNK >= r->n_bytes)) {
            copy(hide(&hidden, r->memory + from, n, false), r->before + from, n);
            n = 0;
        }
    }
}

/* What the host copied since is hidden last, so that it is restored first. */
void memory_launch(bool may_overlap)
{
    if (!may_overlap)
        clear(&hidden);
    if (may_overlap && has_before) {
        for (size_t i = copies.n; i-- > 0;) { /* memory as the last launch left it */
            struct hidden *c = &copies.of[i];
            for (size_t b = 0; b < c->n_bytes; b++) {
                const char now = c->memory[b];
                c->memory[b] = c->bytes[b];
                c->bytes[b] = now;
            }
        }
        for (size_t i = 0; i < n_regions; i++)
            if (regions[i].before)
                hide_region(&regions[i]);
        for (size_t i = 0; i < copies.n; i++) {
            struct hidden *c = &copies.of[i];
            char *old = hide(&hidden, c->memory, c->n_bytes, true);
            copy(old, c->memory, c->n_bytes);
            copy(old + c->n_bytes, c->memory, c->n_bytes);
            copy(c->memory, c->bytes, c->n_bytes);
        }
    }
    simt_fence();
}

bool memory_is_hidden(void)
{
    return hidden.n > 0;
}

/* What the block has written stays. */
static void restore(struct hidden *h)
{
    const char *old = h->bytes + h->n_bytes;
    for (size_t i = 0; i < h->n_bytes; i++) {
        if (h->memory[i] == old[i])
            h->memory[i] = h->bytes[i];
        h->bytes[i] = old[i];
    }
}

static void exchange(struct hidden *h)
{
    for (size_t i = 0; i < h->n_bytes; i++) {
        const char here = h->memory[i];
        h->memory[i] = h->bytes[i];
        h->bytes[i] = here;
    }
}

/* Copies first into the past, last out of it. */
void memory_hide(void)
{
    for (size_t i = hidden.n; i-- > 0;)
        exchange(&hidden.of[i]);
}

void memory_show(bool at_end)
{
    for (size_t i = 0; i < hidden.n; i++)
        if (hidden.of[i].until_end == at_end)
            (at_end ? restore : exchange)(&hidden.of[i]);
}

void memory_admit(void)
{
    if (has_before)
        return;
    has_before = true;
    for (size_t i = 0; i < n_regions; i++) {
        struct region *r = &regions[i];
        if (!r->before)
            r->before = take(r->n_bytes);
        copy(r->before, r->memory, r->n_bytes);
    }
}

void memory_launched(void)
{
    clear(&hidden);
}
