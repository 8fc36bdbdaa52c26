//! An executor on one screen: "runs" each task by counting the letters of its data, and echoes messages.
//!
//! Give its path as the command of an ExecutorInfo; the agent starts it and sets its environment.

use std::collections::BTreeSet;

use tepui_client::executor::{self, Event};
use tepui_client::v1::{TaskID, TaskState, TaskStatus};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut executor = executor::connect_from_env()?;
    let mut running = BTreeSet::new();
    while let Some(event) = executor.next_event().await {
        match event {
            Event::Subscribed(subscribed) => println!("on {}", subscribed.agent_info.hostname),
            Event::Launch(task) => {
                running.insert(task.task_id.value.clone());
                let letters = task.data.as_deref().unwrap_or_default().len();
                executor.update(status(&task.task_id, TaskState::TASK_RUNNING, "counting".into())).await?;
                if letters > 0 {
                    let message = format!("{letters} letters");
                    executor.update(status(&task.task_id, TaskState::TASK_FINISHED, message)).await?;
                }
            }
            Event::Kill { task_id, .. } if running.contains(&task_id.value) => {
                executor.update(status(&task_id, TaskState::TASK_KILLED, "killed".into())).await?;
            }
            Event::Message(data) => executor.message(data).await?,
            Event::Shutdown => break,
            Event::Error(message) => return Err(message.into()),
            Event::Acknowledged { .. } | Event::Kill { .. } | Event::Disconnected => (),
            Event::LaunchGroup(_) => return Err("this executor runs single tasks".into()),
        }
    }
    Ok(())
}

fn status(task: &TaskID, state: TaskState, message: String) -> TaskStatus {
    TaskStatus { task_id: task.clone().into(), state, message: Some(message), ..Default::default() }
}
