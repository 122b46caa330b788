#define _DEFAULT_SOURCE /* MAP_NORESERVE */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device.h"
#include "simt/simt.h"

enum { MAX_HELD = 256 };

static struct {
    void *area;
    size_t n_mapped; /* 0: from the heap */
    void *tracked;
} held[MAX_HELD];
static size_t n_held;

static void hold(void *area, size_t n_bytes, size_t n_mapped)
{
    if (!area || n_held == MAX_HELD) {
        fprintf(stderr, "no memory for a test of %zu bytes\n", n_bytes);
        exit(1);
    }
    held[n_held].area = area;
    held[n_held++].n_mapped = n_mapped;
}

void device_written(void *memory, size_t n_bytes)
{
    simt_memory_written(memory, n_bytes);
}

/* Pages that no test touches are none. */
bool device_has(size_t n_bytes)
{
    (void)n_bytes;
    return true;
}

bool device_open(void)
{
    return true;
}

static void *filled(void *memory, size_t n_bytes, const void *init)
{
    return init ? memcpy(memory, init, n_bytes) : memset(memory, 0xff, n_bytes);
}

void *device_new(size_t n_bytes, const void *init)
{
    /* No padding, so that AddressSanitizer guards the exact end. */
    void *memory = malloc(n_bytes ? n_bytes : 1);
    hold(memory, n_bytes, 0);
    simt_memory_add(memory, n_bytes);
    held[n_held - 1].tracked = memory;
    return filled(memory, n_bytes, init);
}

/* The area is mapped: pages that are never touched need no memory. */
void *device_new_behind(size_t n_before, size_t n_bytes, const void *init)
{
    const size_t n_all = n_before + n_bytes;
    if (n_before == 0)
        return device_new(n_bytes, init);
    char *area = mmap(NULL, n_all, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    hold(area == MAP_FAILED ? NULL : area, n_all, n_all);
    simt_memory_add(area + n_before, n_bytes);
    held[n_held - 1].tracked = area + n_before;
    return filled(area + n_before, n_bytes, init);
}

void device_read(void *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
}

void device_free_all(void)
{
    while (n_held > 0) {
        n_held--;
        simt_memory_drop(held[n_held].tracked);
        if (held[n_held].n_mapped)
            munmap(held[n_held].area, held[n_held].n_mapped);
        else
            free(held[n_held].area);
    }
}

/* Every launch runs its lanes in another order. */
void device_check(int launch_error, const char *kernel)
{
    static uint64_t n_launches;
    simt_seed(++n_launches);
    if (!simt_all_waited()) {
        fprintf(stderr, "%s does not wait for the kernel before\n", kernel);
        exit(1);
    }
    if (!launch_error)
        return;
    fprintf(stderr, "%s: launch error %d\n", kernel, launch_error);
    exit(1);
}

const uint32_t *device_products(size_t *n_blocks)
{
    return simt_products(n_blocks);
}

bool device_leave_out(int which)
{
    simt_leave_out(which);
    return true;
}

void device_report(void)
{
    const struct simt_site *left_out = simt_left_out();
    printf("# %d calls that synchronise", simt_n_calls());
    if (left_out)
        printf(", without %s:%d", left_out->file, left_out->line);
    printf("\n");
}
