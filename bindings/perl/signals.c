/* signals.c: signal handlers that Perl would call in the middle of libhaul's code: those of
 * POSIX::sigaction without `safe`, and all with PERL_SIGNALS=unsafe. An exception of such a handler
 * would jump out of libhaul, and the connection would stay open. This file therefore defers their
 * signals while libhaul works, as Perl defers all others. Perl code that libhaul calls meanwhile has
 * its handlers as the program set them. */
#include "haul_perl.h"

#if defined(HAS_SIGACTION) && defined(SA_SIGINFO)

#if PERL_VERSION >= 32
#define AT_ONCE(takes_info) ((takes_info) ? (void *)PL_sighandler3p : (void *)PL_sighandler1p)
#define DEFERRED(takes_info) ((takes_info) ? (void *)PL_csighandler3p : (void *)PL_csighandler1p)
#else
#define AT_ONCE(takes_info) ((void *)PL_sighandlerp)
#define DEFERRED(takes_info) ((void *)PL_csighandlerp)
#endif

static void *handler_of(const struct sigaction *action) {
    return action->sa_flags & SA_SIGINFO ? (void *)action->sa_sigaction : (void *)action->sa_handler;
}

/* Perl does not defer the signals of a fault in the program. */
static bool is_fault(int number) {
    return number == SIGILL || number == SIGBUS || number == SIGSEGV || number == SIGFPE;
}

/* Sets the function of an action to one of Perl's. Mask and flags stay. */
static void set_function(int number, struct sigaction action, void *plain, void *with_info) {
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction = (void (*)(int, siginfo_t *, void *))with_info;
    else
        action.sa_handler = (void (*)(int))plain;
    (void)sigaction(number, &action, NULL);
}

/* Defers the signals whose handlers Perl would call at once. */
static void defer(pTHX_ hk_deferred *deferred) {
    bool has_posix = FALSE;
    for (int number = 1; PL_psig_ptr && number < NSIG && number < SIG_SIZE; number++) {
        struct sigaction action;
        if (!PL_psig_ptr[number] || is_fault(number))
            continue;
        /* Without POSIX there is no such handler, and no system call is needed to find out. */
        if (!has_posix && !(has_posix = cBOOL(get_cv("POSIX::sigaction", 0))))
            return;
        if (sigaction(number, NULL, &action) != 0 || handler_of(&action) != AT_ONCE(action.sa_flags & SA_SIGINFO))
            continue;
        set_function(number, action, DEFERRED(0), DEFERRED(1));
        deferred->numbers[deferred->count++] = (U8)number;
    }
}

/* Restores them. An action that is no longer the deferred one stays. */
static void restore(pTHX_ hk_deferred *deferred) {
    for (int i = 0; i < deferred->count; i++) {
        struct sigaction action;
        int number = deferred->numbers[i];
        if (sigaction(number, NULL, &action) == 0 && handler_of(&action) == DEFERRED(action.sa_flags & SA_SIGINFO))
            set_function(number, action, AT_ONCE(0), AT_ONCE(1));
    }
    deferred->count = 0;
}

#else

static void defer(pTHX_ hk_deferred *deferred) {
    PERL_UNUSED_ARG(deferred);
}

static void restore(pTHX_ hk_deferred *deferred) {
    PERL_UNUSED_ARG(deferred);
}

#endif

typedef struct {
    hk_deferred *deferred;     /* the signals of the call of libhaul that is in progress, or NULL */
} my_cxt_t;

#define MY_CXT_KEY "HTTP::Haul::_deferred"
START_MY_CXT

void hk_signals_begin(pTHX) {
    MY_CXT_INIT;
    MY_CXT.deferred = NULL;
}

/* A new thread is not in a call of libhaul. */
void hk_signals_clone(pTHX) {
#ifdef USE_ITHREADS
    MY_CXT_CLONE;
    MY_CXT.deferred = NULL;
#endif
}

void hk_defer_signals(pTHX_ hk_deferred *deferred) {
    dMY_CXT;
    deferred->flags = PL_signals & PERL_SIGNALS_UNSAFE_FLAG;
    deferred->count = 0;
    PL_signals &= ~PERL_SIGNALS_UNSAFE_FLAG;
    defer(aTHX_ deferred);
    MY_CXT.deferred = deferred;
}

void hk_restore_signals(pTHX_ hk_deferred *deferred) {
    dMY_CXT;
    MY_CXT.deferred = NULL;
    PL_signals |= deferred->flags;
    restore(aTHX_ deferred);
}

/* `exit` in Perl code leaves libhaul without a return. The pointer is NULL then. */
hk_deferred *hk_pause_deferral(pTHX) {
    dMY_CXT;
    hk_deferred *deferred = MY_CXT.deferred;
    if (deferred)
        hk_restore_signals(aTHX_ deferred);
    return deferred;
}
