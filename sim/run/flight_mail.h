/* Requests that were sent to replicas and have not joined them yet.
 *
 * If a router has answered without a look at a replica's load, the request need not join the
 * replica at once. It is put into the replica's mailbox. Later the replica is simulated through
 * many arrivals in a row, while its state is in the processor's caches. The mailboxes of all
 * replicas share one array. */
#ifndef SIM_RUN_FLIGHT_MAIL_H
#define SIM_RUN_FLIGHT_MAIL_H

#include "run/workload.h"

struct mailed {
    int64_t at_ns;
    uint64_t note; /* value that the router module keeps for the request */
    uint32_t row, serial;
    uint32_t next; /* 1 + place of the next entry in its box, or of the next free entry; 0: none */
};

struct mailbox {          /* in order of time */
    uint32_t first, last; /* 1 + the place of the entry; 0: none */
    uint32_t n;
};

struct mail {
    struct mailed *of; /* [cap], of which n_used were ever used */
    uint32_t n_used, cap, free;
    uint32_t n; /* entries in all boxes */
};

/* Makes room for n entries at once. Returns 0 or IFL_E_NOMEM. Zeroed memory is valid, also for
 * mail_destroy. */
int mail_reserve(struct mail *mail, uint32_t n);
void mail_destroy(struct mail *mail);
static inline bool mail_is_full(const struct mail *mail)
{
    return mail->n == mail->cap;
}

/* Puts the arrival into the box. There must be room (mail_is_full). */
void mail_put(struct mail *mail, struct mailbox *box, const struct arrival *a);
/* Arrival time of the next request in the box; IFL_NEVER: the box is empty. */
static inline int64_t mail_next_ns(const struct mail *mail, const struct mailbox *box)
{
    return box->first > 0 ? mail->of[box->first - 1].at_ns : IFL_NEVER;
}
static inline int64_t mail_last_ns(const struct mail *mail, const struct mailbox *box)
{
    return box->last > 0 ? mail->of[box->last - 1].at_ns : IFL_NEVER;
}
/* Takes the next request of the box, which must not be empty. *a is as it was when it was put
 * there. */
void mail_take(struct mail *mail, struct mailbox *box, const struct workload *workload,
               struct arrival *a);

#endif
