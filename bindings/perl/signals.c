/* signals.c: signal handlers that Perl would call in the middle of libhaul's code: those of
 * POSIX::sigaction without `safe`, and all with PERL_SIGNALS=unsafe. An exception of such a handler
 * would jump out of libhaul, and the connection would stay open. This file therefore defers their
 * signals while libhaul works, as Perl defers all others. */
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

static bool is_called_at_once(pTHX_ const struct sigaction *action) {
    return handler_of(action) == AT_ONCE(action->sa_flags & SA_SIGINFO);
}

/* Perl does not defer the signals of a fault in the program. */
static bool is_fault(int number) {
    return number == SIGILL || number == SIGBUS || number == SIGSEGV || number == SIGFPE;
}

/* Defers one signal, if its handler would be called at once. */
static void defer(pTHX_ hk_deferred *deferred, int number) {
    hk_deferred_signal *entry = &deferred->signals[deferred->count];
    struct sigaction action;
    if (is_fault(number) || sigaction(number, NULL, &entry->was) != 0 || !is_called_at_once(aTHX_ &entry->was))
        return;
    action = entry->was;
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction = (void (*)(int, siginfo_t *, void *))DEFERRED(1);
    else
        action.sa_handler = (void (*)(int))DEFERRED(0);
    if (sigaction(number, &action, NULL) != 0)
        return;
    entry->number = number;
    entry->handler = hk_keep(aTHX_ PL_psig_ptr[number]);
    deferred->count++;
}

void hk_defer_signals(pTHX_ hk_deferred *deferred) {
    bool has_posix = FALSE;
    deferred->flags = PL_signals & PERL_SIGNALS_UNSAFE_FLAG;
    deferred->count = 0;
    PL_signals &= ~PERL_SIGNALS_UNSAFE_FLAG;
    for (int number = 1; PL_psig_ptr && number < NSIG && number < SIG_SIZE; number++) {
        if (!PL_psig_ptr[number])
            continue;
        /* Without POSIX there is no such handler, and no system call is needed to find out. */
        if (!has_posix && !(has_posix = cBOOL(get_cv("POSIX::sigaction", 0))))
            return;
        if (deferred->count < HK_DEFERRED)
            defer(aTHX_ deferred, number);
    }
}

void hk_restore_signals(pTHX_ hk_deferred *deferred) {
    PL_signals |= deferred->flags;
    for (int i = 0; i < deferred->count; i++) {
        const hk_deferred_signal *entry = &deferred->signals[i];
        struct sigaction now;
        /* A callback may have set another handler, which stays. */
        if (PL_psig_ptr[entry->number] == entry->handler && sigaction(entry->number, NULL, &now) == 0
            && handler_of(&now) == DEFERRED(now.sa_flags & SA_SIGINFO))
            (void)sigaction(entry->number, &entry->was, NULL);
    }
}

#else

void hk_defer_signals(pTHX_ hk_deferred *deferred) {
    deferred->flags = PL_signals & PERL_SIGNALS_UNSAFE_FLAG;
    deferred->count = 0;
    PL_signals &= ~PERL_SIGNALS_UNSAFE_FLAG;
}

void hk_restore_signals(pTHX_ hk_deferred *deferred) {
    PL_signals |= deferred->flags;
}

#endif
