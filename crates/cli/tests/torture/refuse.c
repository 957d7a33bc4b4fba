/* Refuses the allocation whose number is in HAUL_REFUSE, counted from 1 over the whole process, and says so on stderr.
 * To be preloaded; glibc only. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_long left;

__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("HAUL_REFUSE");
    atomic_store(&left, number ? atol(number) : 0);
}

/* For a program that knows of this: the n-th from now on, and what is left of n. */
void refuse_from_now(long n)
{
    atomic_store(&left, n);
}

long refuse_left(void)
{
    return atomic_load(&left);
}

static int refused(void)
{
    /* Below 1 it is over, or was never asked for; a wrap round would take years. */
    if (atomic_load(&left) < 1 || atomic_fetch_sub(&left, 1) != 1) {
        return 0;
    }
    static const char mark[] = "[refused]\n";
    if (write(2, mark, sizeof mark - 1) < 0) {
        _exit(99);
    }
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return refused() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return refused() ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    void *got = refused() ? NULL : __libc_memalign(align, size);
    if (!got) {
        return ENOMEM;
    }
    *out = got;
    return 0;
}
