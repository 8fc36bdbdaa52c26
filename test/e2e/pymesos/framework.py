"""A framework on pymesos, unmodified: every step of a scheduler's life, told line by line.

Usage: framework.py MASTER EXECUTOR_SCRIPT. Prints "ok STEP" for each step that worked, in order, and exits 0;
prints what went wrong and exits 1 otherwise. The test that starts it knows the steps.
"""
import getpass
import os
import queue
import sys
import threading
import uuid

from pymesos import MesosSchedulerDriver, Scheduler, decode_data, encode_data

STEP_SECONDS = 60


class Recorder(Scheduler):
    """Puts everything the driver says into one queue, so that a step can wait for what it needs."""

    def __init__(self):
        self.seen = queue.Queue()
        self.offers = []

    def registered(self, driver, framework_id, master_info):
        self.seen.put(("registered", framework_id["value"]))

    def reregistered(self, driver, master_info):
        self.seen.put(("reregistered", None))

    def resourceOffers(self, driver, offers):
        for offer in offers:
            self.seen.put(("offer", offer))

    def statusUpdate(self, driver, status):
        self.seen.put(("update", status))

    def frameworkMessage(self, driver, executor_id, agent_id, message):
        self.seen.put(("message", decode_data(message).decode()))

    def error(self, driver, message):
        self.seen.put(("error", message))

    def wait(self, kind, accept=lambda value: True):
        """The next thing of this kind that fits; other things are dropped, offers are kept."""
        if kind == "offer":
            while self.offers:
                offer = self.offers.pop()
                if accept(offer):
                    return offer
        while True:
            try:
                got, value = self.seen.get(timeout=STEP_SECONDS)
            except queue.Empty:
                fail("waited %d s for %s" % (STEP_SECONDS, kind))
            if got == kind and accept(value):
                return value
            if got == "offer":
                self.offers.append(value)
            if got == "error":
                fail("error event: %s" % value)


def fail(why):
    print("failed: %s" % why, flush=True)
    os._exit(1)


def ok(step):
    print("ok %s" % step, flush=True)


def task(offer, name, cpus=0.1, mem=32, **rest):
    return dict(
        name=name,
        task_id=dict(value=name),
        agent_id=offer["agent_id"],
        resources=[
            dict(name="cpus", type="SCALAR", scalar=dict(value=cpus)),
            dict(name="mem", type="SCALAR", scalar=dict(value=mem)),
        ],
        **rest
    )


def is_state(task_id, *states):
    return lambda status: status["task_id"]["value"] == task_id and status["state"] in states


def start(master, scheduler, framework):
    driver = MesosSchedulerDriver(scheduler, framework, master)
    runner = threading.Thread(target=driver.run)
    runner.daemon = True
    runner.start()
    return driver, runner


def command_tasks(driver, scheduler):
    offer = scheduler.wait("offer")
    driver.launchTasks(offer["id"], [task(offer, "hello", command=dict(value="echo hello"))])
    scheduler.wait("update", is_state("hello", "TASK_RUNNING"))
    scheduler.wait("update", is_state("hello", "TASK_FINISHED"))
    ok("command task finished")
    offer = scheduler.wait("offer")
    driver.launchTasks(offer["id"], [task(offer, "fails", command=dict(value="exit 3"))])
    status = scheduler.wait("update", is_state("fails", "TASK_FAILED"))
    if "exited with status 3" not in status.get("message", ""):
        fail("unexpected message: %s" % status)
    ok("command task failed with its status")


def custom_executor(driver, scheduler, script):
    offer = scheduler.wait("offer")
    executor = dict(
        executor_id=dict(value="py"),
        framework_id=dict(value=driver.framework_id),
        name="pymesos executor",
        command=dict(value="exec %s %s" % (sys.executable, script)),
        resources=[
            dict(name="cpus", type="SCALAR", scalar=dict(value=0.1)),
            dict(name="mem", type="SCALAR", scalar=dict(value=32)),
        ],
    )
    driver.launchTasks(offer["id"], [task(offer, "custom", executor=executor)])
    status = scheduler.wait("update", is_state("custom", "TASK_RUNNING"))
    ok("custom executor runs a task")
    agent_id = status.get("agent_id") or offer["agent_id"]
    driver.sendFrameworkMessage(executor["executor_id"], agent_id, encode_data(b"ping"))
    if scheduler.wait("message") != "pong: ping":
        fail("the executor answered something else")
    ok("framework messages both ways")
    driver.reconcileTasks([])
    status = scheduler.wait("update", lambda s: s.get("reason") == "REASON_RECONCILIATION")
    if status["state"] != "TASK_RUNNING":
        fail("reconciled to %s" % status["state"])
    ok("reconcile")
    driver.killTask(dict(value="custom"))
    scheduler.wait("update", is_state("custom", "TASK_KILLED"))
    ok("kill")


def failover(master, scheduler, driver, framework):
    framework_id = driver.framework_id
    driver.stop(failover=True)
    second = Recorder()
    again = dict(framework, id=dict(value=framework_id))
    driver, runner = start(master, second, again)
    second.wait("reregistered")
    if driver.framework_id != framework_id:
        fail("another id after failover")
    ok("failover keeps the id")
    offer = second.wait("offer")
    driver.launchTasks(offer["id"], [task(offer, "after", command=dict(value="true"))])
    second.wait("update", is_state("after", "TASK_FINISHED"))
    ok("runs tasks after failover")
    driver.stop()
    runner.join(STEP_SECONDS)
    ok("teardown")


def main(master, executor_script):
    framework = dict(
        name="pymesos %s" % uuid.uuid4().hex[:8],
        user=getpass.getuser(),
        hostname="localhost",
        checkpoint=True,
        failover_timeout=60,
        roles=["py"],
        capabilities=[dict(type="MULTI_ROLE"), dict(type="PARTITION_AWARE")],
    )
    scheduler = Recorder()
    driver, _ = start(master, scheduler, dict(framework))
    scheduler.wait("registered")
    ok("subscribe")
    command_tasks(driver, scheduler)
    custom_executor(driver, scheduler, executor_script)
    failover(master, scheduler, driver, framework)


if __name__ == "__main__":
    main(*sys.argv[1:3])
    os._exit(0)
