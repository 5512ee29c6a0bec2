/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include "words.h"

/* What a function's callees do. */
struct function {
	const char *symbol;
	uint64_t work;
};

/* Threads begin with a run() of their class, or with an entry function; the others are operations
 * that the VM's thread executes. Each release has some of them. */
static const struct function functions[] = {
	/* threads that collect garbage; run() of a GangWorker jumps to loop() */
	{"_ZN10GangWorker4loopEv", HOTSPOT_GC},
	{"_ZN26YieldingFlexibleGangWorker4loopEv", HOTSPOT_GC},
	{"_ZN12GCTaskThread3runEv", HOTSPOT_GC},
	{"_ZN12WorkerThread3runEv", HOTSPOT_GC},
	{"_ZN18ConcurrentGCThread3runEv", HOTSPOT_GC},
	{"_ZN20ConcurrentMarkThread3runEv", HOTSPOT_GC},
	{"_ZN24ConcurrentG1RefineThread3runEv", HOTSPOT_GC},
	{"_ZN25ConcurrentMarkSweepThread3runEv", HOTSPOT_GC},
	{"_ZN17StringDedupThread3runEv", HOTSPOT_GC},
	{"_ZN19G1StringDedupThread3runEv", HOTSPOT_GC},
	{"_ZN17StringDedupThread12thread_entryEP10JavaThreadS1_", HOTSPOT_GC},
	/* collections by the VM's thread */
	{"_ZN16VM_CGC_Operation4doitEv", HOTSPOT_GC},
	{"_ZN16VM_G1CollectFull4doitEv", HOTSPOT_GC},
	{"_ZN17VM_GenCollectFull4doitEv", HOTSPOT_GC},
	{"_ZN18VM_SerialGCCollect4doitEv", HOTSPOT_GC},
	{"_ZN19VM_CMS_Initial_Mark4doitEv", HOTSPOT_GC},
	{"_ZN19VM_CMS_Final_Remark4doitEv", HOTSPOT_GC},
	{"_ZN19VM_ShenandoahFullGC4doitEv", HOTSPOT_GC},
	{"_ZN20VM_G1PauseConcurrent4doitEv", HOTSPOT_GC},
	{"_ZN20VM_ParallelGCCollect4doitEv", HOTSPOT_GC},
	{"_ZN21VM_ParallelGCSystemGC4doitEv", HOTSPOT_GC},
	{"_ZN21VM_ShenandoahInitMark4doitEv", HOTSPOT_GC},
	{"_ZN23VM_G1IncCollectionPause4doitEv", HOTSPOT_GC},
	{"_ZN23VM_ShenandoahFinalRoots4doitEv", HOTSPOT_GC},
	{"_ZN24VM_G1TryInitiateConcMark4doitEv", HOTSPOT_GC},
	{"_ZN25VM_G1CollectForAllocation4doitEv", HOTSPOT_GC},
	{"_ZN26VM_GenCollectForAllocation4doitEv", HOTSPOT_GC},
	{"_ZN26VM_ShenandoahDegeneratedGC4doitEv", HOTSPOT_GC},
	{"_ZN27VM_GenCollectFullConcurrent4doitEv", HOTSPOT_GC},
	{"_ZN27VM_ShenandoahInitUpdateRefs4doitEv", HOTSPOT_GC},
	{"_ZN28VM_ShenandoahFinalUpdateRefs4doitEv", HOTSPOT_GC},
	{"_ZN29VM_ParallelGCFailedAllocation4doitEv", HOTSPOT_GC},
	{"_ZN29VM_SerialCollectForAllocation4doitEv", HOTSPOT_GC},
	{"_ZN31VM_CollectForMetadataAllocation4doitEv", HOTSPOT_GC},
	{"_ZN31VM_ParallelCollectForAllocation4doitEv", HOTSPOT_GC},
	{"_ZN31VM_ShenandoahFinalMarkStartEvac4doitEv", HOTSPOT_GC},
	{"_ZN13VM_XOperation4doitEv", HOTSPOT_GC},
	{"_ZN13VM_ZOperation4doitEv", HOTSPOT_GC},
	/* compilers */
	{"_ZN13CompileBroker20compiler_thread_loopEv", HOTSPOT_COMPILER},
	/* other threads of the JVM's own */
	{"_ZN8VMThread3runEv", HOTSPOT_VM},
	{"_ZN13WatcherThread3runEv", HOTSPOT_VM},
	{"_ZN14AsyncLogWriter3runEv", HOTSPOT_VM},
	{"_ZN14NMethodSweeper12sweeper_loopEv", HOTSPOT_VM},
	{"_ZN16JfrSamplerThread3runEv", HOTSPOT_VM},
	{"_ZN16JfrThreadSampler3runEv", HOTSPOT_VM},
	{"_ZN19JfrCPUSamplerThread3runEv", HOTSPOT_VM},
	{"_ZN19ArchiveWorkerThread3runEv", HOTSPOT_VM},
	{"_ZN23NativeHeapTrimmerThread3runEv", HOTSPOT_VM},
	{"_ZN9AOTThread16aot_thread_entryEP10JavaThreadS1_", HOTSPOT_VM},
	{"_ZN13ServiceThread20service_thread_entryEP10JavaThreadP6Thread", HOTSPOT_VM},
	{"_ZN13ServiceThread20service_thread_entryEP10JavaThreadS1_", HOTSPOT_VM},
	{"_ZN20TrainingReplayThread28training_replay_thread_entryEP10JavaThreadS1_", HOTSPOT_VM},
	{"_ZN22MonitorDeflationThread30monitor_deflation_thread_entryEP10JavaThreadS1_",
	 HOTSPOT_VM},
};

int hotspot_claim_threads(const struct fusee_self *self, uint64_t file)
{
	const struct fusee_unwinder_host *host = self->host->unwinder;
	struct fusee_claim c = FUSEE_SIZED(struct fusee_claim,
					   .flags = FUSEE_CLAIM_STEP | FUSEE_CLAIM_READS_NOTHING);
	int n = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		int err;

		if (host->file_symbol(file, functions[i].symbol, &c.range) ||
		    c.range.lo >= c.range.hi)
			continue;
		c.arg = functions[i].work;
		err = host->file_claim(self->in, file, &c);
		if (err && err != -EEXIST) /* equal functions may be one */
			return err;
		n += !err;
	}
	return n;
}

const char *hotspot_work_name(uint64_t work)
{
	return work == HOTSPOT_GC         ? "[GC]"
	       : work == HOTSPOT_COMPILER ? "[JIT compiler]"
	       : work == HOTSPOT_VM       ? "[JVM]"
					  : NULL;
}
