//! A framework on one screen: launches tasks on whatever is offered, waits for their end, leaves.
//!
//! cargo run -p tepui-client --example framework -- 127.0.0.1:5050 3 'echo hello; sleep 1'

use tepui_client::scheduler::{self, Event, calls};
use tepui_client::shorthand::{is_terminal, scalar, shell, task_id};
use tepui_client::v1::{FrameworkInfo, Offer, TaskInfo};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [masters, count, command] = args.as_slice() else {
        return Err("usage: framework MASTERS COUNT COMMAND".into());
    };
    let count: usize = count.parse()?;
    let user = std::env::var("USER").unwrap_or("root".into());
    let framework = FrameworkInfo { name: "example".into(), user, ..Default::default() };
    let mut scheduler = scheduler::connect(masters, framework)?;
    let (mut launched, mut ended) = (0, 0);
    while ended < count {
        match scheduler.next_event().await.ok_or("the session has terminated")? {
            Event::Subscribed(subscribed) => println!("subscribed as {}", subscribed.framework_id.value),
            Event::Offers(offers) => {
                for offer in offers {
                    let here = count.min(launched + fits(&offer));
                    let tasks = (launched..here).map(|number| task(number, command, &offer)).collect();
                    launched = here;
                    scheduler.accept(offer.id.into_option(), vec![calls::launch(tasks)], None).await?;
                }
            }
            Event::Update(status) => {
                let message = status.message.as_deref().unwrap_or_default();
                println!("task {} {:?} {message}", status.task_id.value, status.state);
                scheduler.acknowledge(&status).await?;
                ended += usize::from(is_terminal(status.state));
            }
            Event::Error(message) => return Err(message.into()),
            other => println!("{other:?}"),
        }
    }
    Ok(scheduler.teardown().await?)
}

fn fits(offer: &Offer) -> usize {
    let of =
        |name| -> f64 { offer.resources.iter().filter(|r| r.name == name).map(|r| r.scalar.value).sum() };
    (of("cpus") / 0.1).min(of("mem") / 32.0) as usize
}

fn task(number: usize, command: &str, offer: &Offer) -> TaskInfo {
    TaskInfo {
        name: format!("example {number}"),
        task_id: task_id(number.to_string()).into(),
        agent_id: offer.agent_id.clone(),
        resources: vec![scalar("cpus", 0.1), scalar("mem", 32.0)],
        command: shell(command).into(),
        ..Default::default()
    }
}
