/* Threads, locks, numbers that threads share, the clock and memory: by POSIX, or by Windows.

   Linux and macOS have POSIX; how they tell the system that memory is not needed differs. Compilers that know GNU's
   extensions are asked for inlined functions and for types that may alias others; Microsoft's needs no such permission.
   PULLBACK_WINDOWS chooses the functions of Windows, and PULLBACK_MICROSOFT what Microsoft's compiler knows: tests play
   them on Linux. */

#if defined(_WIN32) && !defined(PULLBACK_WINDOWS)
#define PULLBACK_WINDOWS 1
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#define PULLBACK_MICROSOFT 1
#endif

#ifdef PULLBACK_WINDOWS
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#undef near /* memory of 16-bit processors */
#undef far
#undef PLANES /* of displays */
#else
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#endif

#ifdef PULLBACK_MICROSOFT
#include <intrin.h>
#define INLINE static __inline
#define MAY_ALIAS
#else
#include <stdatomic.h>
#define INLINE static inline __attribute__((always_inline))
#define MAY_ALIAS __attribute__((may_alias))
#endif

/* Lets the other thread of a core go first, in a loop that waits for some microseconds. */
#ifdef PULLBACK_WINDOWS
#define PAUSE() YieldProcessor()
#elif defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb" ::: "memory") /* as long as a pause of x86; `yield` does nothing on most */
#else
#define PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

/* Before a loop: no step reads what an earlier one wrote. */
#ifdef PULLBACK_MICROSOFT
#define INDEPENDENT __pragma(loop(ivdep))
#elif defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Before a loop whose bound is known: GNU's compiler is not to write it out, with its variables in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define ROLLED _Pragma("GCC unroll 1")
#else
#define ROLLED
#endif

/* GNU's compiler makes a version of a loop for each width of vectors, and the loader chooses one. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && !defined(PULLBACK_WINDOWS)
#if __GNUC__ >= 12
#define WIDE __attribute__((target_clones("default", "avx2", "arch=x86-64-v4"), optimize("O3", "no-trapping-math")))
#else
#define WIDE __attribute__((target_clones("default", "avx2"), optimize("O3", "no-trapping-math")))
#endif
#else
#define WIDE
#endif

/* Vectors of 256 bits, or what the compiler makes of them for a processor without; SHUFFLED repeats two positions in each
   pair of elements. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_VECTORS
typedef float Singles __attribute__((vector_size(32)));
typedef double Doubles __attribute__((vector_size(32)));
typedef uint32_t BitsOfSingles __attribute__((vector_size(32)));
typedef uint64_t BitsOfDoubles __attribute__((vector_size(32)));
#define SHUFFLED_SINGLES(x, even, odd) \
    __builtin_shufflevector(x, x, even, odd, even + 2, odd + 2, even + 4, odd + 4, even + 6, odd + 6)
#define SHUFFLED_DOUBLES(x, even, odd) __builtin_shufflevector(x, x, even, odd, even + 2, odd + 2)
#endif
#endif

/* The same where the processor multiplies and adds with one rounding; FUSED_REST is what a product p of a and b lacks. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__) && !defined(PULLBACK_WINDOWS)
#define FUSED __attribute__((target("avx2,fma"), optimize("O3", "no-trapping-math")))
#define FUSED_REST(a, b, p) __builtin_fma(a, b, -(p))
#define HAS_FUSED() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#define HAS_VECTORS_OF_512() __builtin_cpu_supports("avx512f")
typedef float Eight __attribute__((vector_size(32)));
typedef float EightAnywhere __attribute__((vector_size(32), aligned(4), may_alias));
#define FUSED_OF_EIGHT(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#endif

/* Numbers that threads share, and pointers as numbers. All operations are in one order, except `shared_glance`. ------ */

#ifdef PULLBACK_MICROSOFT
#ifdef _WIN64
#define EXCHANGE_ADD(at, n) _InterlockedExchangeAdd64((volatile __int64 *)(at), (n))
#define EXCHANGE(at, n) _InterlockedExchange64((volatile __int64 *)(at), (n))
#else
#define EXCHANGE_ADD(at, n) _InterlockedExchangeAdd((volatile long *)(at), (n))
#define EXCHANGE(at, n) _InterlockedExchange((volatile long *)(at), (n))
#endif
typedef volatile intptr_t Shared;
INLINE intptr_t shared_add(Shared *at, intptr_t n) { return EXCHANGE_ADD(at, n); }
INLINE intptr_t shared_get(Shared *at) { return EXCHANGE_ADD(at, 0); }
INLINE intptr_t shared_glance(Shared *at) { return *at; }
INLINE void shared_set(Shared *at, intptr_t n) { EXCHANGE(at, n); }
#else
typedef _Atomic(intptr_t) Shared;
INLINE intptr_t shared_add(Shared *at, intptr_t n) { return atomic_fetch_add(at, n); } /* returns what it was */
INLINE intptr_t shared_get(Shared *at) { return atomic_load(at); }
INLINE intptr_t shared_glance(Shared *at) { return atomic_load_explicit(at, memory_order_relaxed); }
INLINE void shared_set(Shared *at, intptr_t n) { atomic_store(at, n); }
#endif

/* Locks, and threads that wait. ------------------------------------------------------------------------------------- */

#ifdef PULLBACK_WINDOWS
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Condition;
#define LOCK_FREE SRWLOCK_INIT
#define NOBODY_WAITS CONDITION_VARIABLE_INIT
INLINE void lock_take(Lock *lock) { AcquireSRWLockExclusive(lock); }
INLINE int lock_try(Lock *lock) { return TryAcquireSRWLockExclusive(lock); } /* whether it was free */
INLINE void lock_give(Lock *lock) { ReleaseSRWLockExclusive(lock); }
INLINE void wait_for(Condition *condition, Lock *lock) { SleepConditionVariableSRW(condition, lock, INFINITE, 0); }
INLINE void wake_one(Condition *condition) { WakeConditionVariable(condition); }
INLINE void yield_core(void) { SwitchToThread(); }
#else
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Condition;
#define LOCK_FREE PTHREAD_MUTEX_INITIALIZER
#define NOBODY_WAITS PTHREAD_COND_INITIALIZER
INLINE void lock_take(Lock *lock) { pthread_mutex_lock(lock); }
INLINE int lock_try(Lock *lock) { return !pthread_mutex_trylock(lock); } /* whether it was free */
INLINE void lock_give(Lock *lock) { pthread_mutex_unlock(lock); }
INLINE void wait_for(Condition *condition, Lock *lock) { pthread_cond_wait(condition, lock); }
INLINE void wake_one(Condition *condition) { pthread_cond_signal(condition); }
INLINE void yield_core(void) { sched_yield(); }
#endif

/* Start some threads, which live as long as the process; return how many were started. Signals are for Python's. */
#ifdef PULLBACK_WINDOWS
static long start(DWORD(WINAPI *work)(void *), long wanted) {
    long started = 0;
    for (; started < wanted; started++) {
        HANDLE thread = CreateThread(NULL, 0, work, NULL, 0, NULL);
        if (thread == NULL) break;
        CloseHandle(thread);
    }
    return started;
}
#define WORK_OF_THREAD(name) static DWORD WINAPI name(void *unused)
#define NO_RESULT 0
#else
static long start(void *(*work)(void *), long wanted) {
    long started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started < wanted; started++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL)) break;
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
#define WORK_OF_THREAD(name) static void *name(void *unused)
#define NO_RESULT NULL
#endif

/* Call a function in each forked child. Windows does not fork. */
INLINE void in_forked_child(void (*forget)(void)) {
#ifdef PULLBACK_WINDOWS
    (void)forget;
#else
    pthread_atfork(NULL, NULL, forget);
#endif
}

/* Time. ------------------------------------------------------------------------------------------------------------- */

/* Seconds since some moment. */
static double seconds_now(void) {
#ifdef PULLBACK_WINDOWS
    LARGE_INTEGER now, a_second;
    QueryPerformanceCounter(&now);
    QueryPerformanceFrequency(&a_second);
    return (double)now.QuadPart / (double)a_second.QuadPart;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
}

/* Memory. ----------------------------------------------------------------------------------------------------------- */

/* Aligned memory, for `free_aligned` alone; NULL if there is none. */
static void *allocate_aligned(size_t alignment, size_t size) {
#ifdef PULLBACK_WINDOWS
    return _aligned_malloc(size, alignment);
#else
    void *memory;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
#endif
}

static void free_aligned(void *memory) {
#ifdef PULLBACK_WINDOWS
    _aligned_free(memory);
#else
    free(memory);
#endif
}

/* Whether `free` takes back what `allocate_aligned` returns. */
#ifdef PULLBACK_WINDOWS
enum { ALIGNED_IS_FREED = 0 };
#else
enum { ALIGNED_IS_FREED = 1 };
#endif

/* Ask for large pages: the system fills one with zeros in less time than 512 small ones. */
INLINE void use_large_pages(char *memory, size_t size) {
#ifdef MADV_HUGEPAGE
    enum { PAGE = 1 << 12 };
    size_t skipped = PAGE - (size_t)memory % PAGE;
    madvise(memory + skipped, size - skipped, MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

/* The bytes of a page; 0 if the system takes no pages back from the middle of an array. */
INLINE size_t page_size(void) {
#ifdef PULLBACK_WINDOWS
    return 0;
#else
    return (size_t)sysconf(_SC_PAGESIZE);
#endif
}

/* Give whole pages, whose content is lost, back to the system. */
INLINE void give_back(void *pages, size_t size) {
#ifdef PULLBACK_WINDOWS
    (void)pages, (void)size;
#elif defined(__APPLE__)
    madvise(pages, size, MADV_FREE); /* MADV_DONTNEED keeps the content there */
#else
    madvise(pages, size, MADV_DONTNEED);
#endif
}
