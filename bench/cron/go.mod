module github.com/ollim/ollim/bench/cron

go 1.26.0

require (
	github.com/adhocore/gronx v1.20.4
	github.com/ollim/ollim v0.0.0
	github.com/robfig/cron/v3 v3.0.1
)

replace github.com/ollim/ollim => ../..
