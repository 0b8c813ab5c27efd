use std::sync::Arc;

use quarterdeck_alerts::{AlarmEvent, Alarms};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// The example of the specification, computed with its library for Python.
#[test]
fn messages_are_signed_as_the_specification_says() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

fn change() -> AlarmChange {
    let alarms = Alarms::default();
    let mut changes = alarms.evaluate(0, "quarterdeck_upstream_drifted_tools{server=\"notes\"} 2");
    changes.pop().expect("it fires")
}

/// A webhook at an address that answers with these statuses in turn; the heads and bodies that it was sent.
async fn served(statuses: &'static [u16]) -> (Arc<Webhook>, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    tokio::spawn(async move {
        for status in statuses.iter().chain(std::iter::repeat(&200)) {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut text = Vec::new();
            while !String::from_utf8_lossy(&text).ends_with('}') {
                let mut piece = [0; 4_096];
                let count = socket.read(&mut piece).await.unwrap();
                text.extend(&piece[..count]);
            }
            log.lock().unwrap().push(String::from_utf8(text).unwrap());
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let settings = WebhookSettings { url, secret: "secret".into(), server: "test".into() };
    (Arc::new(Webhook::new(settings).unwrap()), seen)
}

async fn wait_for(webhook: &Webhook, delivered: u64) {
    let wait = async {
        while webhook.counts().delivered < delivered {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it is delivered");
}

#[tokio::test]
async fn a_message_is_sent_again_until_it_is_taken() {
    let (webhook, seen) = served(&[500, 302]).await;
    webhook.send(&change());
    let sending = tokio::spawn({
        let webhook = webhook.clone();
        async move { webhook.run().await }
    });
    wait_for(&webhook, 1).await;
    sending.abort();
    let seen = seen.lock().unwrap();
    let header = |request: &str, name: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.expect("the header").to_owned()
    };
    assert_eq!(seen.len(), 3);
    let ids: Vec<_> = seen.iter().map(|request| header(request, "webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let body = seen[2].split("\r\n\r\n").nth(1).unwrap();
    let time = header(&seen[2], "webhook-timestamp").parse().unwrap();
    assert_eq!(header(&seen[2], "webhook-signature"), sign("secret", &ids[0], time, body));
    let message: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        (&message["type"], &message["alarm"]["rule"]),
        (&json!("alarm.fired"), &json!("upstream_drifted"))
    );
    assert_eq!(message["alarm"]["labels"]["server"], "notes");
    let MessageCounts { failed, given_up, waiting, .. } = webhook.counts();
    assert_eq!((failed, given_up, waiting), (2, 0, 0));
}

#[tokio::test]
async fn what_nobody_takes_is_bounded_and_counted() {
    // A port that nothing listens on.
    let settings =
        WebhookSettings { url: "http://127.0.0.1:1/".into(), secret: "s".into(), server: "test".into() };
    let webhook = Webhook::new(settings).unwrap();
    let change = AlarmChange { event: AlarmEvent::Fired, ..change() };
    for _ in 0..MAX_WAITING + 7 {
        webhook.send(&change);
    }
    let MessageCounts { given_up, waiting, .. } = webhook.counts();
    assert_eq!((given_up, waiting), (7, MAX_WAITING as u64));
}

#[test]
fn pauses_grow_to_a_bound() {
    assert!((1_000..1_250).contains(&pause(0).as_millis()));
    assert!((8_000..10_000).contains(&pause(3).as_millis()));
    assert!((300_000..375_000).contains(&pause(31).as_millis()));
}
