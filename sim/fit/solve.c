#include "fit/solve.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_ITERATIONS = 6, REWEIGHTINGS = 30 }; /* of a round, and rounds */

static const double soft_from = 0.05; /* c: 5% */
/* A parameter is determined, however small it is, if its standard error moves the predictions by
 * less than this in the root mean square. */
static const double felt_from = 0.05;
static const double settled = 1e-7; /* change of the cost between reweightings */
/* The repeatability of timings: the variance of residuals is taken to be no less, since closer
 * agreement is chance. */
static const double least_noise = 0.01;

struct problem {
    const struct form *form;
    const struct fit_sample *const *rows;
    size_t n_rows;
    struct platform platform;
    const struct form_parameter *free[FORM_MAX_PARAMETERS];
    size_t n_free; /* other parameters keep their values in `platform` */
};

/* ---- bounds by transformation ---- */

static double to_bounded(const struct form_parameter *of, double u)
{
    const double share = 1 / (1 + exp(-u));
    if (of->log)
        return exp(log(of->low) + share * (log(of->high) - log(of->low)));
    return of->low + share * (of->high - of->low);
}

static double to_free(const struct form_parameter *of, double value)
{
    double share = of->log ? log(value / of->low) / log(of->high / of->low)
                           : (value - of->low) / (of->high - of->low);
    share = fmin(fmax(share, 0.01), 0.99);
    return log(share / (1 - share));
}

/* d value / d u */
static double slope(const struct form_parameter *of, double u)
{
    const double share = 1 / (1 + exp(-u)), steep = share * (1 - share);
    return of->log ? to_bounded(of, u) * log(of->high / of->low) * steep
                   : (of->high - of->low) * steep;
}

static void set_parameters(struct problem *problem, const gsl_vector *u)
{
    for (size_t i = 0; i < problem->n_free; i++)
        *form_parameter_at(&problem->platform, problem->free[i]) =
            to_bounded(problem->free[i], gsl_vector_get(u, i));
}

static int residuals(const gsl_vector *u, void *context, gsl_vector *f)
{
    struct problem *problem = context;
    set_parameters(problem, u);
    for (size_t i = 0; i < problem->n_rows; i++) {
        const struct fit_sample *row = problem->rows[i];
        const double predicted_s = problem->form->predict_s(&problem->platform, row);
        gsl_vector_set(f, i, log(predicted_s / row->measured_s));
    }
    return GSL_SUCCESS;
}

/* ---- the iteration ---- */

struct work {
    gsl_multifit_nlinear_workspace *lm;
    gsl_vector *u, *weights, *f;
    gsl_matrix *jacobian, *covariance;
};

static void free_work(struct work *work)
{
    if (work->lm)
        gsl_multifit_nlinear_free(work->lm);
    gsl_vector_free(work->u);
    gsl_vector_free(work->weights);
    gsl_vector_free(work->f);
    gsl_matrix_free(work->jacobian);
    gsl_matrix_free(work->covariance);
}

static bool allocate(struct work *work, size_t n, size_t p)
{
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    parameters.solver = gsl_multifit_nlinear_solver_cholesky;
    *work = (struct work){
        .lm = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters, n, p),
        .u = gsl_vector_alloc(p),
        .weights = gsl_vector_alloc(n),
        .f = gsl_vector_alloc(n),
        .jacobian = gsl_matrix_alloc(n, p),
        .covariance = gsl_matrix_alloc(p, p),
    };
    return work->lm && work->u && work->weights && work->f && work->jacobian && work->covariance;
}

/* Returns what is minimised. */
static double reweight(struct work *work, struct problem *problem)
{
    double cost = 0;
    residuals(work->u, problem, work->f);
    for (size_t i = 0; i < problem->n_rows; i++) {
        const double r = gsl_vector_get(work->f, i) / soft_from, soft = sqrt(1 + r * r);
        const double weight = problem->rows[i]->weight > 0 ? problem->rows[i]->weight : 1;
        gsl_vector_set(work->weights, i, weight / soft);
        cost += weight * 2 * (soft - 1);
    }
    return cost;
}

static void minimise(struct work *work, struct problem *problem)
{
    gsl_multifit_nlinear_fdf function = {
        .f = residuals,
        .n = problem->n_rows,
        .p = problem->n_free,
        .params = problem,
    };
    double last_cost = INFINITY;
    int info;
    for (int i = 0; i < REWEIGHTINGS; i++) {
        const double cost = reweight(work, problem);
        if (i > 1 && fabs(cost - last_cost) < settled * cost)
            break;
        last_cost = cost;
        gsl_multifit_nlinear_winit(work->u, work->weights, &function, work->lm);
        gsl_multifit_nlinear_driver(MAX_ITERATIONS, 1e-6, 1e-8, 0, NULL, NULL, &info, work->lm);
        gsl_vector_memcpy(work->u, gsl_multifit_nlinear_position(work->lm));
    }
}

/* ---- uncertainty of the parameters ---- */

/* sigma^2 of the weighted residuals, no less than the noise of timings. */
static double variance(const struct work *work, const struct problem *problem)
{
    double chi2;
    gsl_blas_ddot(gsl_multifit_nlinear_residual(work->lm), gsl_multifit_nlinear_residual(work->lm),
                  &chi2);
    const double freedom = (double)problem->n_rows - (double)problem->n_free;
    return fmax(chi2 / fmax(freedom, 1), least_noise * least_noise);
}

/* True within a hundredth of the range from a bound. */
static bool is_at_bound(double u)
{
    return fabs(u) > 4.6;
}

static size_t index_of(const struct problem *problem, size_t free)
{
    return (size_t)(problem->free[free] - problem->form->parameters);
}

/* Keeps the columns of parameters away from their bounds. At a bound the derivative vanishes, and
 * the column would make the covariance of the other parameters singular. */
static size_t keep_free(const struct work *work, gsl_matrix *jacobian, size_t *columns)
{
    const gsl_matrix *all = gsl_multifit_nlinear_jac(work->lm);
    size_t n = 0;
    for (size_t i = 0; i < all->size2; i++) {
        if (is_at_bound(gsl_vector_get(work->u, i)))
            continue;
        gsl_vector_const_view from = gsl_matrix_const_column(all, i);
        gsl_vector_view to = gsl_matrix_column(jacobian, n);
        gsl_vector_memcpy(&to.vector, &from.vector);
        columns[n++] = i;
    }
    return n;
}

/* The change of the logarithms of predictions by one standard error of the i-th free parameter. */
static double felt(const struct work *work, size_t i, double std_error_of_u)
{
    const gsl_matrix *jacobian = gsl_multifit_nlinear_jac(work->lm);
    gsl_vector_const_view column = gsl_matrix_const_column(jacobian, i);
    return std_error_of_u * gsl_blas_dnrm2(&column.vector) / sqrt((double)jacobian->size1);
}

static void measure_parameters(struct work *work, const struct problem *problem,
                               struct solution *solution)
{
    size_t columns[FORM_MAX_PARAMETERS];
    const double sigma2 = variance(work, problem);
    const size_t n = keep_free(work, work->jacobian, columns);
    for (size_t i = 0; i < problem->n_free; i++)
        solution->at_bound[index_of(problem, i)] = is_at_bound(gsl_vector_get(work->u, i));
    if (n == 0)
        return;
    gsl_matrix_view free = gsl_matrix_submatrix(work->jacobian, 0, 0, problem->n_rows, n);
    gsl_matrix_view covariance = gsl_matrix_submatrix(work->covariance, 0, 0, n, n);
    gsl_multifit_nlinear_covar(&free.matrix, 1e-14, &covariance.matrix);
    for (size_t i = 0; i < n; i++) {
        const size_t at = columns[i], of = index_of(problem, at);
        const double of_u = sqrt(sigma2 * gsl_matrix_get(&covariance.matrix, i, i));
        solution->std_error[of] = slope(problem->free[at], gsl_vector_get(work->u, at)) * of_u;
        solution->felt[of] = felt(work, at, of_u);
    }
}

/* A variance of zero means that GSL left the direction out as singular. */
static bool is_determined(const struct form *form, const struct solution *solution, int i)
{
    const double std_error = solution->std_error[i];
    return std_error > 0 &&
           (std_error < fmax(solution->value[i] / 2, form->parameters[i].negligible) ||
            solution->felt[i] < felt_from);
}

static int check_determined(const struct form *form, const struct solution *solution,
                            struct ifl_error *error)
{
    for (int i = 0; i < form->n_parameters; i++)
        if (!solution->at_bound[i] && !solution->held[i] && !is_determined(form, solution, i))
            return ifl_fail(error, IFL_E_INPUT,
                            "%zu rows do not determine %s.%s (%.3g, standard error %.3g), expected "
                            "rows of more different sizes, or more runs of each",
                            solution->n_rows, form->section, form->parameters[i].name,
                            solution->value[i], solution->std_error[i]);
    return 0;
}

static int check_count(const struct form *form, size_t n_rows, struct ifl_error *error)
{
    if (n_rows >= 2 * (size_t)form->n_parameters)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "%zu rows do not determine the %d numbers of %s, from %s on; expected at least "
                    "%d rows",
                    n_rows, form->n_parameters, form->section, form->parameters[0].name,
                    2 * form->n_parameters);
}

static bool is_shown(const struct form_parameter *of, const struct problem *problem)
{
    size_t n = 0;
    if (!of->shows)
        return true;
    for (size_t i = 0; i < problem->n_rows; i++)
        n += of->shows(problem->rows[i]);
    return n > 0 && n < problem->n_rows;
}

static void choose_free(struct problem *problem, struct solution *solution)
{
    for (int i = 0; i < problem->form->n_parameters; i++) {
        const struct form_parameter *of = &problem->form->parameters[i];
        const bool absent = of->of_some_kernels && *form_parameter_at(&problem->platform, of) == 0;
        solution->held[i] = absent || !is_shown(of, problem);
        if (!solution->held[i])
            problem->free[problem->n_free++] = of;
    }
}

/* Rounds to five digits: further ones mean nothing, and the last ones differ between machines. */
static void round_parameters(struct problem *problem)
{
    for (size_t i = 0; i < problem->n_free; i++) {
        char digits[32];
        double *value = form_parameter_at(&problem->platform, problem->free[i]);
        snprintf(digits, sizeof digits, "%.5g", *value);
        *value = strtod(digits, NULL);
    }
}

static void find(struct work *work, struct problem *problem, struct solution *solution)
{
    for (size_t i = 0; i < problem->n_free; i++)
        gsl_vector_set(work->u, i, to_free(problem->free[i], problem->free[i]->start));
    minimise(work, problem);
    measure_parameters(work, problem, solution);
    solution->cost = reweight(work, problem);
    round_parameters(problem);
    for (int i = 0; i < problem->form->n_parameters; i++)
        solution->value[i] = *form_parameter_at(&problem->platform, &problem->form->parameters[i]);
}

int solve(const struct form *form, const struct fit_sample *const *rows, size_t n_rows,
          enum solve_demand demand, struct platform *platform, struct solution *solution,
          struct ifl_error *error)
{
    struct problem problem = {.form = form, .rows = rows, .n_rows = n_rows, .platform = *platform};
    struct work work;
    *solution = (struct solution){.n_rows = n_rows};
    if (check_count(form, n_rows, error))
        return error->code;
    choose_free(&problem, solution);
    if (problem.n_free == 0)
        return 0;
    gsl_error_handler_t *was = gsl_set_error_handler_off();
    const bool room = allocate(&work, n_rows, problem.n_free);
    if (room)
        find(&work, &problem, solution);
    free_work(&work);
    gsl_set_error_handler(was);
    if (!room)
        return ifl_fail_nomem(error);
    if (demand == SOLVE_DETERMINED && check_determined(form, solution, error))
        return error->code;
    *platform = problem.platform;
    return 0;
}
