/* What `portable.h` uses of Microsoft's compiler, played by GNU's. */

#define __int64 intptr_t
#define __pragma(directive)
#define _WIN64 1
#define _InterlockedExchangeAdd64(at, n) __atomic_fetch_add(at, n, __ATOMIC_SEQ_CST)
#define _InterlockedExchange64(at, n) __atomic_exchange_n(at, n, __ATOMIC_SEQ_CST)
