#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier): madvise */
#include "record/huge_pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((uintptr_t)2 << 20)

void huge_pages_wanted(void *at, size_t n_bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE),
                    begin = ((uintptr_t)at + page_bytes - 1) & ~(page_bytes - 1),
                    end = ((uintptr_t)at + n_bytes) & ~(page_bytes - 1);
    if (end > begin && end - begin >= HUGE_BYTES)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)at;
    (void)n_bytes;
#endif
}
