// SPDX-License-Identifier: MIT
// java_text: what Java's programs are known by in text (language_text.h), and what a run tells of
// them.
#include "languages.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "own_code.h"
#include "run_stats.h"
#include "text.h"

static const struct wait_rule waits[] = {
    {"JVM_Sleep*", WAIT_NAME_TIMER},
    {0},
};

static const struct wait_rule wait_parts[] = {
    {"ObjectMonitor::enter", WAIT_NAME_RUNTIME_LOCK},
    {"ObjectMonitor::EnterI", WAIT_NAME_RUNTIME_LOCK},
    {"ObjectMonitor::ReenterI", WAIT_NAME_RUNTIME_LOCK},
    {"ObjectMonitor::wait", WAIT_NAME_RUNTIME_CONDITION},
    {"Unsafe_Park", WAIT_NAME_PARK},
    {"ReentrantLock.lock", WAIT_NAME_RUNTIME_LOCK}, // java.util.concurrent.locks
    {"ReentrantLock$Sync.lock", WAIT_NAME_RUNTIME_LOCK},
    {"ReentrantReadWriteLock$ReadLock.lock", WAIT_NAME_RUNTIME_LOCK},
    {"ReentrantReadWriteLock$WriteLock.lock", WAIT_NAME_RUNTIME_LOCK},
    {0},
};

static const char *const pools[] = {
    "Semaphore.acquire",
    "HikariPool.getConnection",
    "GenericObjectPool.borrowObject",
    NULL,
};
static const char *const gives[] = {"BlockingQueue.put", "BlockingDeque.put", NULL};
static const char *const results[] = {"FutureTask.get",         "CompletableFuture.get",
                                      "CompletableFuture.join", "ForkJoinTask.get",
                                      "ForkJoinTask.join",      NULL};
static const char *const answers[] = {"net.http.HttpClientImpl.send", NULL};
static const char *const children[] = {"ProcessImpl.waitFor", "UNIXProcess.waitFor", NULL};

// The collectors' threads have these names since 9.
static const char *const collectors[] = {"GC Thread#", "G1 ",        "ZWorker", "ZDriver",
                                         "XWorker",    "Shenandoah", NULL};

// The collectors' threads before, and what the thread of the virtual machine does for them.
static const char *const collects[] = {
    "GangWorker::run",
    "ConcurrentGCThread::run",
    "GCTaskThread::run",
    "VM_GenCollect",
    "VM_CollectForMetadata",
    "VM_SerialCollect",
    "VM_SerialGC",
    "VM_ParallelCollect",
    "VM_ParallelGC",
    "VM_G1",
    "VM_Shenandoah",
    "Heap::do_collection",
    NULL,
};

// Of the collectors with generations.
static const char *const collects_all[] = {
    "MarkSweep",         "SerialFullGC", "PSParallelCompact", "ParCompactionManag",
    "MarkFromRootsTask", "PSAdjustTask", "DensePrefix",       "G1Full",
    "ShenandoahFullGC",  NULL,
};

// Only the slow path has a name. A thread that waits for the collector is in it as well.
static const char *const allocates[] = {"MemAllocator::allocate", NULL};
static const char *const asks_to_collect[] = {"JVM_GC", NULL};
static const char *const locks[] = {"monitor ", "lock ", NULL};
static const char *const files[] = {"java", "libj[lv][im]*.so", NULL};
static const char *const folders[] = {"/jvm/", "/jdk", "/jre", "/openjdk", NULL};

// In a perf map of the virtual machine's own.
static const char *const inner[] = {
    "Interpreter", "StubRoutines*", "I2C/C2I*",       "RuntimeStub*", "*Blob",
    "vtable *",    "itable *",      "MethodHandles*", NULL,
};

// Its first word may be what it returns: "void java.lang.Thread.sleep(long)".
static bool is_of_library(const char *name)
{
	static const char *const packages[] = {
	    "java.",  "javax.",  "jdk.",  "sun.",  "com.sun.",
	    "Ljava/", "Ljavax/", "Ljdk/", "Lsun/", NULL,
	};
	const size_t length = strcspn(name, "(");
	const char *word = name;

	for (size_t i = 0; i < length; i++)
		if (name[i] == ' ')
			word = name + i + 1;
	return text_begins_with_any(word, packages);
}

static enum code_owner owner(const struct code_place *place)
{
	if (place->kind == MODULE_FILE)
		return CODE_OF_NOBODY;
	// A method has its class before a dot; what has none is the virtual machine's own code.
	if (place->kind == MODULE_RUNTIME && strcmp(place->path, "[java]") == 0 &&
	    !strchr(place->name, '.'))
		return CODE_OF_LANGUAGE;
	return is_of_library(place->name) ? CODE_OF_LANGUAGE : CODE_OF_NOBODY;
}

static void print_unread(const struct run_stats *stats, FILE *stream)
{
	const struct run_language *java = &stats->languages[language_position(&java_language)];

	if (java->unknown > 0)
		fprintf(stream,
		        "profiler: Java %d is not known to this profiler: its methods have no "
		        "names\n",
		        java->unknown);
	else if (java->unknown)
		fputs("profiler: a Java is not known to this profiler: its methods have no names\n",
		      stream);
	if (java->unnamed)
		fprintf(stream,
		        "profiler: %ju frame%s of Java without a name: the method was gone before "
		        "it was read\n",
		        (uintmax_t)java->unnamed, text_plural(java->unnamed));
}

const struct language_text java_text = {
    .waits = waits,
    .wait_parts = wait_parts,
    .locks = locks,
    .pools = pools,
    .gives = gives,
    .results = results,
    .answers = answers,
    .children = children,
    .collectors = collectors,
    .collects = collects,
    .collects_all = collects_all,
    .allocates = allocates,
    .asks_to_collect = asks_to_collect,
    .files = files,
    .folders = folders,
    .inner = inner,
    .owner = owner,
    .print_unread = print_unread,
};
