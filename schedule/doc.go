// Package schedule runs gocron's jobs on several replicas so that each tick is run by one of them:
// at most one, whatever clocks, replicas and nodes do, and one if a majority of the nodes and a
// replica are well when the tick is due.
//
//	client, err := redlock.New(redlock.Config{Addrs: nodes})
//	s, err := schedule.New(client)
//	_, err = s.Add("report", gocron.CronJob("0 * * * *", false), run)
//	s.Start()
//
// Every replica does the same. A tick is a job's name and a scheduled instant, in milliseconds UTC;
// what is on record of it on a majority of the nodes outlives the lock that decided it.
//
// # Limits
//
// A tick is not run, lawfully:
//
//   - if the replica that had committed it died or froze before or in its run: at most once comes
//     first. One that dies before its commit is replaced, two in a row as well;
//   - if it could not be decided within Grace: no majority of the nodes answered, or one that may
//     know more did not. A node whose memory is newer than the tick does not count as knowing it;
//   - under OverlapSkip, the default, while a run of the job is under way on any replica; a dead
//     replica's run ends for the others with its run lock, after the client's TTL.
//
// A run is not stopped by force when its lock is lost: its context ends, and what it writes to
// should check Tick.Token, which grows from tick to tick. Under OverlapAllow a run holds no lock,
// so nothing ends it but Shutdown.
//
// The nodes' clocks judge what is due. The Scheduler's gocron goes by them too, so a replica whose
// clock is off, or stepped, fires on time. A scheduler of your own goes by its machine's clock: one
// that is ahead by more than an interval wins none of that job's ticks, one that is late by more
// than Grace none either; neither robs or repeats any.
//
// All replicas have to agree on a job's name, schedule and options. What gocron would count from a
// replica's start counts from the epoch here (intervals, @every), or from WithStartAt (every second
// day, week, month); what cannot be the same everywhere is refused by Add.
//
// In the nights of daylight saving gocron's rules hold, see its WithDaylightSavingsTimePolicy. In a
// zone that has such nights hourly crons lose one tick in autumn; the default, UTC, has none.
//
// # Which one
//
//	Scheduler   everything above; runs get a context and a Tick
//	Locker      for a gocron scheduler of your own. Bind it, and ticks run at most once; runs are
//	            not told of the loss of their lock. Not bound it is weaker, see there
//	Elector     one replica runs all jobs; see there for what that promises
//
// # The model
//
// One tick, at the replica that runs it and at one that does not:
//
//	T  |-- claim --|-- commit --|-- run lock --| run ............ | unlock
//	   |   lock, and   majority                  the claim is free
//	   |   the record  of nodes                  from here on
//	   |
//	T  |-- claim: held --.. 2, 4, 8 ms ..-- claim: on record: ErrTickTaken
//
// Whoever has the claim lock on a majority, and finds that nobody can have committed the tick,
// commits it, and then runs it. A claim is short, and a run is long, so they are two locks: the
// claim orders commits, the run lock keeps runs apart. The run lock comes after the commit, so that
// a claimer that dies before its commit leaves none that would keep the next one from running.
//
// Files in reading order: tick.go, errors.go; instant.go and due.go, which decide and do nothing;
// claim.go, the protocol, and manual.go; scheduler.go, job.go, run.go, gate.go, clock.go,
// observer.go; plan.go, grid.go, options.go, gocronoptions.go: what is aligned and what refused;
// locker.go, bind.go, await.go; elector.go, campaign.go.
package schedule
