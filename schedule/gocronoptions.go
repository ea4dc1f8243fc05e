package schedule

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-co-op/gocron/v2"
)

// What an option of gocron's does is hidden in a function of an unexported type, so it is called
// with an empty value, and then it shows which field it has set.

// refusedScheduler are fields of gocron's scheduler that options must not set.
var refusedScheduler = []struct{ path, why string }{
	{"location", "WithLocation: use the option of this package"},
	{"exec.clock", "WithClock: the clocks of the nodes say when a tick is due"},
	{"exec.elector", "WithDistributedElector: every tick has its own winner"},
	{"exec.locker", "WithDistributedLocker: every job has its own locker"},
}

// refusedJob are fields of gocron's jobs that global options must not set.
var refusedJob = []struct{ path, why string }{
	{"id", "WithIdentifier: would be the same for all jobs"},
	{"name", "WithName: would be the same for all jobs"},
	{"parentCtx", "WithContext: runs have contexts of their own"},
	{"cron", "WithCronImplementation: cannot be compared between replicas"},
	{"singletonMode", "WithSingletonMode: use WithOverlap"},
	{"limitRunsTo", "WithLimitedRuns: counts the runs of one replica only"},
	{"startTime", "WithStartAt: use the option of this package"},
	{"startImmediately", "WithStartImmediately: use RunNow"},
	{"stopTime", "WithStopAt: use the option of this package"},
	{"intervalFromCompletion", "WithIntervalFromCompletion: instants would depend on the run"},
	{"locker", "WithDistributedJobLocker: every job has its own locker"},
	{"disabledLocker", "WithDisabledDistributedJobLocker: every job needs its locker"},
	{"beforeJobRunsSkipIfBeforeFuncErrors",
		"BeforeJobRunsSkipIfBeforeFuncErrors: the tick is on record as run by then"},
}

// checkGocron refuses options that would take the ticks out of our hands.
func checkGocron(opts []gocron.SchedulerOption) error {
	var faults []error
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, invalid("WithGocron: option %d is nil", i+1))
			continue
		}
		set := reflect.New(reflect.TypeOf(opt).In(0).Elem())
		if err := call(opt, set); err != nil {
			faults = append(faults, invalid("WithGocron: option %d: %v", i+1, err))
			continue
		}
		for _, r := range refusedScheduler {
			if isSet(set.Elem(), r.path) {
				faults = append(faults, invalid("WithGocron: %s", r.why))
			}
		}
		if mode := field(set.Elem(), "exec.limitMode"); mode.IsValid() && !mode.IsNil() &&
			mode.Elem().FieldByName("mode").Int() != gocron.LimitModeReschedule {
			faults = append(faults, invalid("WithGocron: WithLimitConcurrentJobs in wait mode:"+
				" queued runs lose their instant"))
		}
		faults = append(faults, checkGlobal(field(set.Elem(), "globalJobOptions")))
	}
	return errors.Join(faults...)
}

// globalPolicy is what these options, none of them refused, say to times that a night in spring
// leaves out.
func globalPolicy(opts []gocron.SchedulerOption) gocron.DaylightSavingsTimePolicy {
	if len(opts) == 0 {
		return gocron.DaylightSavingsTimeDefault
	}
	scheduler := reflect.New(reflect.TypeOf(opts[0]).In(0).Elem())
	for _, opt := range opts {
		_ = call(opt, scheduler)
	}
	policy := gocron.DaylightSavingsTimeDefault
	global := field(scheduler.Elem(), "globalJobOptions")
	if !global.IsValid() {
		return policy
	}
	for i := range global.Len() {
		job, _ := emptyJob(global.Index(i))
		if f := field(job.Elem(), "daylightSavingsTimePolicy"); f.IsValid() && !f.IsZero() {
			policy = gocron.DaylightSavingsTimePolicy(f.Int())
		}
	}
	return policy
}

// checkGlobal refuses options for all jobs.
func checkGlobal(opts reflect.Value) error {
	if !opts.IsValid() {
		return nil
	}
	var faults []error
	for i := range opts.Len() {
		set, fault := emptyJob(opts.Index(i))
		if !fault.IsNil() {
			faults = append(faults, invalid("WithGocron: WithGlobalJobOptions: option %d: %v",
				i+1, fault))
		}
		for _, r := range refusedJob {
			if isSet(set.Elem(), r.path) {
				faults = append(faults, invalid("WithGocron: WithGlobalJobOptions: %s", r.why))
			}
		}
	}
	return errors.Join(faults...)
}

// emptyJob is a job that nothing but this option, an element of globalJobOptions, was applied to;
// and its error.
func emptyJob(hidden reflect.Value) (job, fault reflect.Value) {
	opt := reflect.NewAt(hidden.Type(), hidden.Addr().UnsafePointer()).Elem()
	job = reflect.New(opt.Type().In(0).Elem())
	return job, opt.Call([]reflect.Value{job, reflect.Zero(opt.Type().In(1))})[0]
}

func call(opt gocron.SchedulerOption, set reflect.Value) error {
	result := reflect.ValueOf(opt).Call([]reflect.Value{set})
	err, _ := result[0].Interface().(error)
	return err
}

// field is a field of a field; not valid where there is no such, in another version of gocron.
func field(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		if v = v.FieldByName(name); !v.IsValid() {
			return v
		}
	}
	return v
}

func isSet(v reflect.Value, path string) bool {
	f := field(v, path)
	return f.IsValid() && !f.IsZero()
}
