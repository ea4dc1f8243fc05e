// Package schedule runs gocron's jobs so that each tick is run by one of several replicas.
package schedule
