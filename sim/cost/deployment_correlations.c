/* Correlations of a deployment's numbers. If a fit cannot separate two numbers, their sum is better
 * known than either of them. */
#include <gsl/gsl_linalg.h>
#include <string.h>

#include "base/tree.h"
#include "cost/deployment.h"

int deployment_set_correlation(struct deployment *deployment, const char *a, const char *b,
                               double r)
{
    const struct deployment_correlation of = {deployment_key_of(a), deployment_key_of(b), r};
    size_t i = 0;
    while (i < deployment->n_correlations &&
           !((deployment->correlations[i].a == of.a && deployment->correlations[i].b == of.b) ||
             (deployment->correlations[i].a == of.b && deployment->correlations[i].b == of.a)))
        i++;
    if (of.a < 0 || of.b < 0 || i == DEPLOYMENT_CORRELATIONS)
        return -1;
    deployment->correlations[i] = of;
    if (i == deployment->n_correlations)
        deployment->n_correlations++;
    return 0;
}

void deployment_drop_correlations(struct deployment *deployment, int key)
{
    size_t n = 0;
    for (size_t i = 0; i < deployment->n_correlations; i++)
        if (deployment->correlations[i].a != key && deployment->correlations[i].b != key)
            deployment->correlations[n++] = deployment->correlations[i];
    deployment->n_correlations = n;
}

/* ---- reading ---- */

static int read_one(const struct node *row, const char *path, struct deployment *deployment,
                    struct ifl_error *error)
{
    static const struct ifl_param number = {
        .name = "correlation", .type = IFL_REAL, .min = -1, .max = 1};
    char found[128];
    double r;
    if (row->kind != NODE_LIST || row->n != 3)
        return tree_fail(row, error, "%s has %s, expected [number, number, correlation]", path,
                         row->kind == NODE_LIST ? "a list of another length"
                                                : tree_describe(row, found));
    for (size_t i = 0; i < 2; i++)
        if (row->of[i]->kind != NODE_SCALAR || deployment_key_of(row->of[i]->text) < 0)
            return tree_fail(row->of[i], error, "%s has %s, expected a number such as host.step_s",
                             path, tree_describe(row->of[i], found));
    if (strcmp(row->of[0]->text, row->of[1]->text) == 0)
        return tree_fail(row, error, "%s has %s twice in a row", path, row->of[0]->text);
    if (field_read(row->of[2], path, &number, &r, error) < 0)
        return error->code;
    return deployment_set_correlation(deployment, row->of[0]->text, row->of[1]->text, r) == 0
               ? 0
               : tree_fail(row, error, "%s has more than %d rows", path, DEPLOYMENT_CORRELATIONS);
}

int deployment_lay_correlations(const struct node *list, const char *path,
                                struct deployment *deployment, struct ifl_error *error)
{
    char found[128];
    if (tree_is_null(list)) {
        deployment->n_correlations = 0;
        return 0;
    }
    if (list->kind != NODE_LIST)
        return tree_fail(list, error, "%s is %s, expected a list of [number, number, correlation]",
                         path, tree_describe(list, found));
    for (size_t i = 0; i < list->n; i++)
        if (read_one(list->of[i], path, deployment, error) < 0)
            return error->code;
    return 0;
}

/* ---- drawing ---- */

static size_t place_of(const struct deployment *deployment, int key)
{
    size_t i = 0;
    while (i < deployment->n_intervals && deployment_interval_key(&deployment->intervals[i]) != key)
        i++;
    return i;
}

/* z becomes L z, where L L^T is the matrix of correlations. */
static bool multiply(gsl_matrix *correlations, double z[])
{
    gsl_error_handler_t *was = gsl_set_error_handler_off();
    const bool ok = gsl_linalg_cholesky_decomp1(correlations) == GSL_SUCCESS;
    gsl_set_error_handler(was);
    for (size_t i = correlations->size1; ok && i-- > 0;) {
        double sum = 0;
        for (size_t j = 0; j <= i; j++)
            sum += gsl_matrix_get(correlations, i, j) * z[j];
        z[i] = sum;
    }
    return ok;
}

bool deployment_correlate(const struct deployment *deployment, double z[DEPLOYMENT_INTERVALS])
{
    const size_t n = deployment->n_intervals;
    if (deployment->n_correlations == 0 || n == 0)
        return true;
    gsl_matrix *matrix = gsl_matrix_alloc(n, n);
    if (!matrix)
        return false;
    gsl_matrix_set_identity(matrix);
    for (size_t i = 0; i < deployment->n_correlations; i++) {
        const struct deployment_correlation *of = &deployment->correlations[i];
        const size_t a = place_of(deployment, of->a), b = place_of(deployment, of->b);
        if (a == n || b == n)
            continue;
        gsl_matrix_set(matrix, a, b, of->r);
        gsl_matrix_set(matrix, b, a, of->r);
    }
    const bool ok = multiply(matrix, z);
    gsl_matrix_free(matrix);
    return ok;
}

/* ---- writing ---- */

void deployment_write_correlations(const struct deployment *deployment, const char *indent,
                                   FILE *out)
{
    static const struct ifl_param number = {.type = IFL_REAL};
    char a[64], b[64], r[32];
    if (deployment->n_correlations == 0)
        return;
    fprintf(out, "%scorrelations:\n", indent);
    for (size_t i = 0; i < deployment->n_correlations; i++) {
        const struct deployment_correlation *of = &deployment->correlations[i];
        field_print(&number, &of->r, r, sizeof r);
        fprintf(out, "%s  - [%s, %s, %s]\n", indent, deployment_key_name(of->a, a),
                deployment_key_name(of->b, b), r);
    }
}
