#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "simt/simt.h"

enum { MAX_HELD = 256 };

static void *held[MAX_HELD];
static size_t n_held;

bool device_open(void)
{
    return true;
}

void *device_new_behind(size_t n_before, size_t n_bytes, const void *init)
{
    /* Exactly as large as asked for, so that AddressSanitizer guards the very end. */
    const size_t n_all = n_before + (n_bytes ? n_bytes : 1);
    char *area = n_held < MAX_HELD ? malloc(n_all) : NULL;
    if (!area) {
        fprintf(stderr, "no memory for a test of %zu bytes\n", n_all);
        exit(1);
    }
    char *memory = area + n_before;
    if (init)
        memcpy(memory, init, n_bytes);
    else
        memset(memory, 0xff, n_bytes);
    held[n_held++] = area;
    return memory;
}

void *device_new(size_t n_bytes, const void *init)
{
    return device_new_behind(0, n_bytes, init);
}

void device_read(void *to, const void *from, size_t n_bytes)
{
    memcpy(to, from, n_bytes);
}

void device_free_all(void)
{
    while (n_held > 0)
        free(held[--n_held]);
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
