#define _XOPEN_SOURCE 700 /* NOLINT(bugprone-reserved-identifier): alternate stacks */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16, LINE_BYTES = 1024 };

/* The mark of a thread. Marks are never freed, because a handler may read the list at any time; the
 * mark of a thread that has ended goes to a new thread. */
struct mark {
    _Atomic(const struct guard_call *) call; /* NULL: in none */
    atomic_bool taken;
    struct mark *next;
    char stack[STACK_BYTES]; /* for handlers: the thread's own may be full */
};

static _Atomic(struct mark *) marks;
static struct mark without_memory; /* shared by threads that get no mark; not in the list */
static _Thread_local struct mark *own;
static pthread_key_t ends; /* its destructor sees a thread end */
static pthread_once_t once = PTHREAD_ONCE_INIT, armed = PTHREAD_ONCE_INIT;
static const char *volatile eraser = "";
static _Atomic(const struct guard_call *) last_call; /* NULL: nothing runs at the end */

/* ---- messages, with what a signal handler may call ---- */

struct line {
    char text[LINE_BYTES];
    size_t n;
};

/* Keeps a message on one line, whatever the names of files hold. */
static void add(struct line *line, const char *text)
{
    for (; *text && line->n < LINE_BYTES - 1; text++)
        line->text[line->n++] = (char)((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void begin(struct line *line)
{
    line->n = 0;
    for (const char *c = eraser; *c && line->n < LINE_BYTES / 2; c++)
        line->text[line->n++] = *c;
    add(line, "inflight: ");
}

static void say(struct line *line)
{
    line->text[line->n++] = '\n';
    /* If standard error takes nothing, there is no other place for the message. */
    if (write(STDERR_FILENO, line->text, line->n) < 0)
        return;
}

static const struct guard_call *own_call(void)
{
    return own ? atomic_load_explicit(&own->call, memory_order_relaxed) : NULL;
}

static const struct guard_call *any_call(void)
{
    const struct guard_call *call = NULL;
    for (struct mark *mark = atomic_load(&marks); mark && !call; mark = mark->next)
        call = atomic_load_explicit(&mark->call, memory_order_relaxed);
    return call;
}

/* "NAME <own words> CALL" if this thread is in a call, else "<other words>, while NAME was in
 * CALL". */
static void blame(struct line *line, const char *own_words, const char *other_words)
{
    const struct guard_call *call = own_call(), *other = call ? NULL : any_call();
    if (!call)
        add(line, other_words);
    if (other)
        add(line, ", while ");
    if (call || other)
        add(line, call ? call->module : other->module);
    if (call || other)
        add(line, call ? own_words : " was in ");
    if (call || other)
        add(line, call ? call->call : other->call);
}

void guard_tell_interrupted(void)
{
    struct line line;
    const struct guard_call *call = any_call();
    if (!call)
        return;
    begin(&line);
    add(&line, "interrupted again; ");
    add(&line, call->module);
    add(&line, " is in ");
    add(&line, call->call);
    say(&line);
}

/* ---- threads ---- */

static void ends_in_call(void)
{
    struct line line;
    begin(&line);
    blame(&line, " called exit in ", "exit was called");
    say(&line);
    _exit(1);
}

static void drop_stack(const struct mark *mark)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == mark->stack)
        sigaltstack(&none, NULL);
}

static void thread_ends(void *context)
{
    static struct line line; /* not on the stack, which was left where the call stood */
    struct mark *mark = context;
    if (atomic_load(&mark->call)) {
        begin(&line);
        blame(&line, " ended its thread in ", "");
        say(&line);
        _exit(1);
    }
    drop_stack(mark);
    own = NULL;
    atomic_store(&mark->taken, false);
}

static void prepare(void)
{
    pthread_key_create(&ends, thread_ends);
}

/* Gives the thread an alternate stack, unless it has one: sanitizers would miss theirs. */
static void take_stack(struct mark *mark)
{
    const stack_t stack = {.ss_sp = mark->stack, .ss_size = sizeof mark->stack};
    stack_t now;
    if (sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_DISABLE)
        sigaltstack(&stack, NULL);
}

static struct mark *reuse(void)
{
    struct mark *mark = atomic_load(&marks);
    for (bool taken = false; mark; mark = mark->next, taken = false)
        if (atomic_compare_exchange_strong(&mark->taken, &taken, true))
            break;
    return mark;
}

static struct mark *make(void)
{
    struct mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return NULL;
    atomic_store(&mark->taken, true);
    mark->next = atomic_load(&marks);
    while (!atomic_compare_exchange_weak(&marks, &mark->next, mark))
        continue;
    return mark;
}

static void join(void)
{
    pthread_once(&once, prepare);
    struct mark *mark = reuse();
    if (!mark)
        mark = make();
    own = mark ? mark : &without_memory;
    if (!mark)
        return;
    pthread_setspecific(ends, mark);
    take_stack(mark);
}

const struct guard_call *guard_enter(const struct guard_call *call)
{
    if (!own)
        join();
    const struct guard_call *before = atomic_load_explicit(&own->call, memory_order_relaxed);
    atomic_store_explicit(&own->call, call, memory_order_relaxed);
    return before;
}

void guard_leave(const struct guard_call *before)
{
    atomic_store_explicit(&own->call, before, memory_order_relaxed);
}

/* ---- signals and the end of the program ---- */

static const struct {
    int number;
    const char *words;
} crashes[] = {{SIGSEGV, " (SIGSEGV)"},
               {SIGBUS, " (SIGBUS)"},
               {SIGFPE, " (SIGFPE)"},
               {SIGILL, " (SIGILL)"},
               {SIGABRT, " (SIGABRT)"}};
enum { N_CRASHES = sizeof crashes / sizeof *crashes };
static struct sigaction was[N_CRASHES];

/* What is known of the address. x86 tells none of one that is not canonical (SI_KERNEL). */
static const char *words_of_address(const siginfo_t *info)
{
    const uintptr_t address = (uintptr_t)info->si_addr;
    const bool is_fault = info->si_signo == SIGSEGV || info->si_signo == SIGBUS;
    if (!is_fault || (info->si_code <= 0))
        return NULL;
    if (info->si_code == SI_KERNEL || address >= (uintptr_t)1 << 61)
        return own_call() ? own_call()->hint : NULL;
    return address < 4096 ? "; it used a NULL pointer" : NULL;
}

static void tell_crash(const char *words, const siginfo_t *info)
{
    struct line line;
    begin(&line);
    blame(&line, " crashed in ", "crashed outside of the calls of plug-ins and engines");
    add(&line, words);
    const char *more = words_of_address(info);
    if (more)
        add(&line, more);
    say(&line);
}

/* Behind a crash of tell_crash: code of a plug-in has overwritten what that reads. */
static void tell_without_name(const char *words)
{
    static struct line line;
    begin(&line);
    add(&line, "crashed, and the name of the module is lost");
    add(&line, words);
    say(&line);
}

/* A crash of the handler comes back to it. */
static void let_crashes_in(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < N_CRASHES; i++)
        sigaddset(&set, crashes[i].number);
    pthread_sigmask(how, &set, NULL);
}

/* Ends with the former action: the signal is raised again, and delivered when this handler returns,
 * with the address of the crash. Of threads that crash together only the first one tells; the
 * others leave it the time that this takes. */
static void on_crash(int number, siginfo_t *info, void *context)
{
    static _Atomic(const void *) teller; /* by the address of its `own` */
    const void *none = NULL;
    int i = 0;
    (void)context;
    while (i < N_CRASHES - 1 && crashes[i].number != number)
        i++;
    if (atomic_compare_exchange_strong(&teller, &none, (const void *)&own)) {
        let_crashes_in(SIG_UNBLOCK);
        tell_crash(crashes[i].words, info);
        let_crashes_in(SIG_BLOCK);
    } else if (none == (const void *)&own) {
        tell_without_name(crashes[i].words);
    } else {
        sleep(1);
    }
    sigaction(number, &was[i], NULL);
    raise(number);
}

/* Destructors of libraries run behind it. */
static void on_exit(void)
{
    if (any_call())
        ends_in_call();
    if (atomic_load(&last_call))
        (void)guard_enter(atomic_load(&last_call));
}

static void arm(void)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    for (int i = 0; i < N_CRASHES; i++)
        sigaction(crashes[i].number, &action, &was[i]);
    atexit(on_exit);
    at_quick_exit(on_exit);
}

void guard_arm(void)
{
    pthread_once(&armed, arm);
}

void guard_end_in(const struct guard_call *call)
{
    atomic_store(&last_call, call);
}

void guard_erase_with(const char *text)
{
    eraser = text;
}
