/* The steps of a validation: pair the requests, compute the statistics, write the files. */
#include "inflight/validate.h"

#include "validate/findings.h"

const char *const ifl_validation_figures[] = {"validation_scatter", "validation_cdf",
                                              "validation_error", NULL};
const char *const ifl_validation_files[] = {"validation.csv", "validation_requests.csv",
                                            "validation_cdf.csv", "validation_steps.csv", NULL};

static int check_outcomes(const struct ifl_run *run, struct ifl_error *error)
{
    if (run->trace->outcome)
        return IFL_OK;
    return ifl_fail_at(error, run->name, 0, 0,
                       "a trace without outcomes, expected a run's folder or a recorded run "
                       "(inflight list traces)");
}

static int find_all(const struct ifl_validation *v, const struct pairs *pairs,
                    struct findings *findings, struct ifl_error *error)
{
    const bool timed = v->simulated.trace->has_stamps && v->measured.trace->has_stamps;
    int rc = find_latencies(pairs, v, findings, error);
    if (rc == IFL_OK && timed)
        rc = find_throughput(pairs, findings, error);
    if (rc == IFL_OK && timed)
        rc = find_cost(pairs, findings, error);
    if (rc == IFL_OK && timed)
        rc = find_scheduling(pairs, findings, error);
    if (rc == IFL_OK)
        rc = find_steps(v, findings, error);
    return rc ? rc : find_intervals(v, findings, error);
}

static int report(const struct ifl_validation *v, const struct pairs *pairs,
                  const struct findings *findings, struct ifl_error *error)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/validation_requests.csv", v->out_dir);
    int rc = write_pairs(pairs, path, error);
    snprintf(path, sizeof path, "%s/validation_cdf.csv", v->out_dir);
    if (rc == IFL_OK)
        rc = write_curves(pairs, path, error);
    snprintf(path, sizeof path, "%s/validation.csv", v->out_dir);
    if (rc == IFL_OK)
        rc = findings_write(findings, path, error);
    if (rc == IFL_OK && v->table)
        print_validation(v, pairs, findings);
    return rc;
}

int ifl_validate(const struct ifl_validation *v, struct ifl_error *error)
{
    ifl_assert(v->n_parts == 0 || v->part < v->n_parts);
    struct pairs pairs;
    struct findings findings = {0};
    if (check_outcomes(&v->simulated, error) || check_outcomes(&v->measured, error) ||
        pairs_match(v, &pairs, error))
        return error->code;
    int rc = find_all(v, &pairs, &findings, error);
    if (rc == IFL_OK)
        rc = report(v, &pairs, &findings, error);
    findings_free(&findings);
    pairs_free(&pairs);
    return rc;
}
