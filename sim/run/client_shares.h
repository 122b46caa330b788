/* The share of each client's requests that meet their objectives. */
#ifndef SIM_RUN_CLIENT_SHARES_H
#define SIM_RUN_CLIENT_SHARES_H

#include "inflight/report.h"

struct client_shares {
    uint64_t *n, *n_met; /* [n_clients] */
    uint32_t n_clients;
    int64_t from_ns; /* requests that arrive earlier do not count */
};

/* Returns 0 or IFL_E_NOMEM. The caller must call client_shares_finish, after an error, too. */
int client_shares_init(struct client_shares *shares, uint32_t n_clients, int64_t from_ns,
                       struct ifl_error *error);
void client_shares_finish(struct client_shares *shares);

/* Callback for struct ifl_recorder_options; its context is the struct client_shares. */
void client_shares_hear(void *shares, const struct ifl_request_record *record);

/* Returns the least share among clients with requests; NaN if there are none. */
double client_shares_least(const struct client_shares *shares);

#endif
