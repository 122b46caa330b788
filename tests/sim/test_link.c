#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "fleet/link.h"

#define MS INT64_C(1000000)
#define GB INT64_C(1000000000)

/* Two transfers of 1 GB, sent at 0 and at 50 ms, over a link of 10 GB/s. */
static void expect_pair(enum link_sharing sharing, int64_t latency_ns, int64_t first_ns,
                        int64_t second_ns)
{
    const struct link_spec spec = {latency_ns, 10e9, 0, sharing};
    const int64_t expected[] = {first_ns, second_ns};
    struct links links;
    struct link_arrival arrival;
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    for (uint64_t i = 0; i < 2; i++) {
        const struct link_load load = {{0, LINK_NONE}, GB, 1, (int64_t)i * 50 * MS, i, i, 0};
        cr_assert_eq(links_take(&links, load.at_ns, &arrival), 0);
        cr_assert_eq(links_send(&links, &load), 0);
    }
    for (uint64_t i = 0; i < 2; i++) {
        cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
        cr_assert_eq(arrival.tag, i);
        cr_assert_eq(arrival.end_ns, expected[i], "sharing %d: transfer %d ends at %lld", sharing,
                     (int)i, (long long)arrival.end_ns);
        cr_assert_eq(arrival.alone_ns, 100 * MS + latency_ns);
    }
    cr_assert_eq(links_next_ns(&links), IFL_NEVER);
    links_destroy(&links);
}

/* With a pencil: fifo, 100 + 100; frozen, 50 + 1 GB / 5 GB/s; shared, half a GB is left at 50 and
 * goes at 5 GB/s until 150, when half a GB of the second is left. */
Test(link, contention_is_one_of_four)
{
    expect_pair(LINK_UNSHARED, 0, 100 * MS, 150 * MS);
    expect_pair(LINK_FIFO, 0, 100 * MS, 200 * MS);
    expect_pair(LINK_FROZEN, 0, 100 * MS, 250 * MS);
    expect_pair(LINK_SHARED, 0, 150 * MS, 200 * MS);
}

/* A rate so low that one transfer lasts longer than any run: none ends before it began, and none
 * behind it. */
Test(link, no_end_is_beyond_the_last_time)
{
    for (enum link_sharing sharing = LINK_FIFO; sharing <= LINK_UNSHARED; sharing++) {
        const struct link_spec spec = {7 * MS, 1e-300, 0, sharing};
        struct links links;
        struct link_arrival arrival;
        int n_come = 0;
        cr_assert_eq(links_create(&links, 1, &spec), 0);
        for (uint64_t i = 0; i < 3; i++) {
            const struct link_load load = {{0, LINK_NONE}, GB, 1, (int64_t)i * MS, i, i, 0};
            cr_assert_eq(links_take(&links, load.at_ns, &arrival), 0);
            cr_assert_eq(links_send(&links, &load), 0);
        }
        for (; links_take(&links, IFL_LAST_NS, &arrival) == 1; n_come++) {
            cr_assert_eq(arrival.end_ns, IFL_LAST_NS);
            cr_assert_eq(arrival.alone_ns, IFL_LAST_NS);
        }
        cr_assert_eq(n_come, 3);
        links_destroy(&links);
    }
}

/* The link is free while the bytes are under way. */
Test(link, latency_takes_no_part_of_a_link)
{
    expect_pair(LINK_UNSHARED, 7 * MS, 107 * MS, 157 * MS);
    expect_pair(LINK_FIFO, 7 * MS, 107 * MS, 207 * MS);
    expect_pair(LINK_SHARED, 7 * MS, 157 * MS, 207 * MS);
}

/* BLIS counts a transfer from its start until it has come, its base latency included
 * (pd_events.go). 1 GB is sent at 0 and has left the link at 100 ms; one that is sent at 103 ms,
 * before the first has come at 107, gets half of the rate, and one that is sent at 107 ms with the
 * second a half, too. */
Test(link, a_frozen_part_is_of_all_that_have_not_come)
{
    const struct link_spec spec = {7 * MS, 10e9, 0, LINK_FROZEN};
    static const int64_t sent_ns[] = {0, 103 * MS, 107 * MS};
    static const int64_t expected_ns[] = {107 * MS, 310 * MS, 314 * MS};
    struct links links;
    struct link_arrival arrival;
    int n_come = 0;
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    for (uint64_t i = 0; i < 3; i++) {
        const struct link_load load = {{0, LINK_NONE}, GB, 1, sent_ns[i], i, i, 0};
        while (links_take(&links, sent_ns[i], &arrival) == 1)
            cr_assert_eq(arrival.end_ns, expected_ns[n_come++]);
        cr_assert_eq(links_send(&links, &load), 0);
    }
    while (links_take(&links, IFL_LAST_NS, &arrival) == 1)
        cr_assert_eq(arrival.end_ns, expected_ns[n_come++]);
    cr_assert_eq(n_come, 3);
    links_destroy(&links);
}

/* 30 ns of pieces and 1000 of bytes, of which three quarters have passed: 257.5 ns are left, and
 * all of the latency. The next transfer finds the link free behind the former. */
Test(link, what_has_passed_takes_nothing)
{
    const struct link_spec spec = {8, 1e9, 3, LINK_FIFO};
    const struct link_load part = {{0, LINK_NONE}, 1000, 10, 0, 0, 0, 0.75};
    const struct link_load whole = {{0, LINK_NONE}, 1000, 10, 0, 1, 1, 0};
    struct links links;
    struct link_arrival arrival;
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    cr_assert_eq(links_busy_ns(&links, &part), 258);
    cr_assert_eq(links_alone_ns(&links, &part), 258 + 8);
    cr_assert_eq(links_send(&links, &part), 0);
    cr_assert_eq(links_send(&links, &whole), 0);
    cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
    cr_assert_eq(arrival.end_ns, 258 + 8);
    cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
    cr_assert_eq(arrival.begun_ns, 258);
    cr_assert_eq(arrival.end_ns, 258 + 1030 + 8);
    links_destroy(&links);
}

/* Out of replicas 0 and 1, into replica 2: one byte a ns each, half of that where the way in is
 * shared. */
Test(link, a_path_is_as_slow_as_its_slowest_link)
{
    const struct link_spec fast = {0, 4e9, 0, LINK_SHARED}, slow = {0, 1e9, 0, LINK_SHARED};
    struct links links;
    struct link_arrival arrival;
    cr_assert_eq(links_create(&links, 3, &fast), 0);
    links_set(&links, 2, &slow);
    for (uint32_t i = 0; i < 2; i++) {
        const struct link_load load = {{i, 2}, 1000 + 1000 * i, 1, 0, i, i, 0};
        cr_assert_eq(links_alone_ns(&links, &load), 1000 + 1000 * i);
        cr_assert_eq(links_send(&links, &load), 0);
    }
    cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
    cr_assert_eq(arrival.end_ns, 2000);
    cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
    cr_assert_eq(arrival.end_ns, 3000);
    links_destroy(&links);
}

Test(link, pieces_cost_time_beside_their_bytes)
{
    const struct link_spec spec = {5, 1e9, 3, LINK_FIFO};
    const struct link_load load = {{0, LINK_NONE}, 1000, 10, 0, 0, 0, 0};
    struct links links;
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    cr_assert_eq(links_alone_ns(&links, &load), 5 + 10 * 3 + 1000);
    links_destroy(&links);
}

/* Many at once on one shared link end in order of their sizes, and together take what they take one
 * after the other. */
Test(link, sharing_loses_no_time)
{
    enum { N = 200 };
    const struct link_spec spec = {0, 1e9, 0, LINK_SHARED};
    struct links links;
    struct link_arrival arrival;
    int64_t n_bytes = 0;
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    for (uint64_t i = 0; i < N; i++) {
        const struct link_load load = {
            {0, LINK_NONE}, 1000 * (int64_t)(1 + (i * 37) % N), 1, 0, i, i, 0};
        n_bytes += load.n_bytes;
        cr_assert_eq(links_send(&links, &load), 0);
    }
    int64_t last_ns = 0, last_size = 0;
    for (uint64_t i = 0; i < N; i++) {
        cr_assert_eq(links_take(&links, IFL_LAST_NS, &arrival), 1);
        const int64_t size = (int64_t)(1 + (arrival.tag * 37) % N);
        cr_assert(size >= last_size && arrival.end_ns >= last_ns);
        last_size = size;
        last_ns = arrival.end_ns;
    }
    cr_assert(llabs(last_ns - n_bytes) <= N, "%lld", (long long)(last_ns - n_bytes));
    links_destroy(&links);
}

/* A published table of transfers, which one line meets: 0.37 ms + bytes / 140 GB/s. */
Test(link, a_line_meets_mooncakes_table)
{
    const struct link_spec spec = {370000, 140e9, 0, LINK_FIFO};
    char row[256];
    int n = 0;
    struct links links;
    FILE *in = fopen("tests/sim/data/mooncake-roce.csv", "r");
    cr_assert(in);
    cr_assert_eq(links_create(&links, 1, &spec), 0);
    while (fgets(row, sizeof row, in)) {
        double mb, ms;
        if (sscanf(row, "%lf,%lf", &mb, &ms) != 2)
            continue;
        const struct link_load load = {{0, LINK_NONE}, llround(mb * 1e6), 1, 0, 0, 0, 0};
        const double simulated_ms = (double)links_alone_ns(&links, &load) / 1e6;
        cr_assert_lt(fabs(simulated_ms / ms - 1), 0.06, "%g MB: %g ms, published %g", mb,
                     simulated_ms, ms);
        n++;
    }
    fclose(in);
    links_destroy(&links);
    cr_assert_eq(n, 9);
}
