#include "cli/interrupt.h"

#include <stddef.h>
#include <time.h>

volatile sig_atomic_t interrupt_asked;
static volatile time_t asked_s;

/* `timeout` and mpirun send a signal to the program and to its group: those come at once. */
enum { PATIENCE_S = 1 };

static void on_signal(int number)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupt_asked) {
        asked_s = now.tv_sec;
        interrupt_asked = 1;
    } else if (now.tv_sec - asked_s > PATIENCE_S) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
