"""An executor on pymesos, unmodified: runs one pretend task, echoes messages, obeys kills."""
from threading import Thread

from pymesos import Executor, MesosExecutorDriver, decode_data, encode_data


class Echo(Executor):
    def launchTask(self, driver, task):
        self.report(driver, task["task_id"], "TASK_RUNNING")

    def killTask(self, driver, task_id):
        self.report(driver, task_id, "TASK_KILLED")

    def frameworkMessage(self, driver, message):
        driver.sendFrameworkMessage(encode_data(b"pong: " + decode_data(message)))

    def report(self, driver, task_id, state):
        # The driver calls us from the thread that reads acknowledgements; an update is sent from another one.
        Thread(target=driver.sendStatusUpdate, args=(dict(task_id=task_id, state=state),)).start()


if __name__ == "__main__":
    MesosExecutorDriver(Echo()).run()
