/* What `portable.h` uses of Windows, played by POSIX, so that a test runs on Linux what Windows would run. */

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define near
#define far
#define WINAPI
#define INFINITE 0xffffffffu

typedef uint32_t DWORD;
typedef void *HANDLE;
typedef union {
    long long QuadPart;
} LARGE_INTEGER;

typedef pthread_mutex_t SRWLOCK;
typedef pthread_cond_t CONDITION_VARIABLE;
#define SRWLOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define CONDITION_VARIABLE_INIT PTHREAD_COND_INITIALIZER
#define AcquireSRWLockExclusive(lock) pthread_mutex_lock(lock)
#define TryAcquireSRWLockExclusive(lock) (pthread_mutex_trylock(lock) == 0)
#define ReleaseSRWLockExclusive(lock) pthread_mutex_unlock(lock)
#define SleepConditionVariableSRW(condition, lock, milliseconds, flags) pthread_cond_wait(condition, lock)
#define WakeConditionVariable(condition) pthread_cond_signal(condition)
#define SwitchToThread() sched_yield()
#define YieldProcessor() __asm__ volatile("" ::: "memory")

typedef struct {
    DWORD (*work)(void *);
    void *argument;
} Begun;

static void *begin(void *given) {
    Begun begun = *(Begun *)given;
    free(given);
    begun.work(begun.argument);
    return NULL;
}

static HANDLE CreateThread(void *security, size_t stack, DWORD (*work)(void *), void *argument, DWORD flags, DWORD *number) {
    Begun *begun = malloc(sizeof *begun);
    pthread_t thread;
    *begun = (Begun){work, argument};
    return pthread_create(&thread, NULL, begin, begun) ? NULL : (HANDLE)thread;
}
#define CloseHandle(thread) pthread_detach((pthread_t)(thread))

static void QueryPerformanceFrequency(LARGE_INTEGER *frequency) { frequency->QuadPart = 10000000; }
static void QueryPerformanceCounter(LARGE_INTEGER *counter) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    counter->QuadPart = now.tv_sec * 10000000 + now.tv_nsec / 100;
}

/* Memory that `free` refuses, as on Windows: before it is how far its beginning is. */
static void *_aligned_malloc(size_t size, size_t alignment) {
    char *memory = malloc(size + 2 * alignment);
    if (!memory) return NULL;
    char *aligned = memory + 2 * alignment - (uintptr_t)memory % alignment;
    ((size_t *)aligned)[-1] = (size_t)(aligned - memory);
    return aligned;
}
static void _aligned_free(void *memory) {
    if (memory) free((char *)memory - ((size_t *)memory)[-1]);
}
