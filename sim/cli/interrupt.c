#include "cli/interrupt.h"

#include <stddef.h>
#include <time.h>

#include "base/guard.h"

volatile sig_atomic_t interrupt_asked;
static struct timespec asked;

/* `timeout` and mpirun send a signal both to the program and to its group: the two copies arrive
 * close together and count as one. */
enum { SAME_SIGNAL_MS = 200 };

static long ms_since_asked(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - asked.tv_sec) * 1000 + (now.tv_nsec - asked.tv_nsec) / 1000000;
}

static void on_signal(int number)
{
    if (!interrupt_asked) {
        clock_gettime(CLOCK_MONOTONIC, &asked);
        interrupt_asked = 1;
    } else if (ms_since_asked() >= SAME_SIGNAL_MS) {
        guard_tell_interrupted();
        signal(number, SIG_DFL);
        raise(number);
    }
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaddset(&action.sa_mask, SIGINT); /* one at a time, as they share `asked` */
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
