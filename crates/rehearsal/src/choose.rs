//! Finds the thing that a request is about before it is changed: an event to cancel or to move, a time that was offered.
//!
//! Which tool lists the things is what the declarations say: the description of a required id names it.

use jiff::{Timestamp, Zoned};
use quarterdeck_contracts::{ErrorType, Outcome};
use serde_json::{Map, Value};

use crate::context::{CallOutcome, Context};
use crate::fill::RFC_3339;
use crate::now;
use crate::parameter::Kind;
use crate::parsed_message::ParsedMessage;
use crate::reply::Reply;
use crate::small_talk::{is_yes_or_no, phrase};
use crate::toolbox::{Tool, Toolbox};
use crate::when::When;
use crate::{missing, words};

const WHICH_ONE: &str = "Which one do you mean?";
/// How far ahead is looked when no day was said; lists usually take a month.
const LIST_DAYS: i64 = 30;
/// The same where the user asks for the list itself.
const DEFAULT_LIST_DAYS: i64 = 7;
const MAX_NAMED: usize = 5;

/// The required id of a tool, and the tool that lists what may have it.
pub(crate) fn lister<'t, 'a>(toolbox: &'t Toolbox<'a>, tool: &Tool<'a>) -> Option<(&'a str, &'t Tool<'a>)> {
    let ids =
        tool.properties().filter(|(name, schema)| tool.requires(name) && Kind::of(name, schema) == Kind::Id);
    ids.into_iter().find_map(|(name, schema)| {
        let description = schema.get("description")?.as_str()?;
        let is_named =
            |it: &&Tool<'_>| it.name != tool.name && !it.is_action() && description.contains(it.name);
        Some((name, toolbox.tools.iter().find(is_named)?))
    })
}

/// What a request says about the thing, and the time that it shall get.
struct Wish<'m> {
    thing: ParsedMessage<'m>,
    target: Option<When>,
}

impl<'m> Wish<'m> {
    /// “Move my 3 pm meeting to 4 pm”: what stands after the last “to” is the new time.
    fn read(context: &Context<'_>, tool: &Tool<'_>, text: &'m str) -> Self {
        let moves = tool.properties().any(|(name, schema)| Kind::of(name, schema) == Kind::Start);
        let whole = ParsedMessage::new(text, &context.now);
        if !moves {
            return Self { thing: whole, target: None };
        }
        let is_to = |at: &usize| matches!(whole.tokens[*at].lower.as_str(), "to" | "until" | "into");
        let has_time = |text: &str| {
            let when = ParsedMessage::new(text, &context.now).when;
            (when.date.is_some() || when.time.is_some() || when.moment.is_some()).then_some(when)
        };
        let split = (0..whole.tokens.len()).rev().filter(is_to).find_map(|at| {
            let start = whole.tokens[at].start;
            Some((start, has_time(&text[start..])?))
        });
        match split {
            Some((start, target)) => {
                Self { thing: ParsedMessage::new(&text[..start], &context.now), target: Some(target) }
            }
            None => Self { thing: whole, target: None },
        }
    }

    /// The words that tell the thing from others.
    fn words(&self, tool: &Tool<'_>) -> Vec<String> {
        #[rustfmt::skip]
        const COMMON: &[&str] = &[
            "meeting", "appointment", "event", "booking", "bookings", "calendar", "cancel", "move", "delete", "remove", "reschedule",
            "postpone", "push", "shift", "delay", "change", "drop", "one", "whole", "all", "day", "time", "o'clock", "forward", "back",
        ];
        let name = tool.name.to_lowercase();
        let free = self.thing.tokens.iter().enumerate().filter(|(at, _)| !self.thing.when.used.contains(at));
        let words = free.map(|(_, token)| token.lower.trim_end_matches("'s"));
        let telling =
            words.filter(|it| !words::is_stop_word(it) && !COMMON.contains(it) && !name.contains(it));
        telling.map(str::to_owned).collect()
    }

    fn points_back(&self) -> bool {
        self.thing.tokens.iter().any(|it| matches!(it.lower.as_str(), "it" | "that" | "this" | "them"))
    }
}

/// Something with an id that may be changed.
struct Item<'v> {
    id: &'v str,
    title: &'v str,
    start: Option<Zoned>,
    end: Option<Zoned>,
    text: String,
}

impl<'v> Item<'v> {
    fn read(context: &Context<'_>, value: &'v Value, id_name: &str) -> Option<Self> {
        let id = value.get(id_name)?.as_str()?;
        if value.get("changeable") == Some(&Value::Bool(false)) {
            return None;
        }
        let moment = |names: [&str; 2]| {
            let text = names.iter().find_map(|name| value.get(name)?.as_str())?;
            Some(context.now.local(text.parse::<Timestamp>().ok()?))
        };
        let title = ["title", "name", "label"]
            .iter()
            .find_map(|name| value.get(name)?.as_str())
            .unwrap_or("untitled");
        Some(Self {
            id,
            title,
            start: moment(["start", "start_time"]),
            end: moment(["end", "end_time"]),
            text: value.to_string().to_lowercase(),
        })
    }

    fn named(&self) -> String {
        match (&self.start, &self.end) {
            (Some(start), Some(end)) => format!("“{}”, {}", self.title, now::period(start, end)),
            _ => format!("“{}”", self.title),
        }
    }
}

/// What to do about a request whose thing is not known yet: ask, list, or go ahead with what was just talked about.
pub(crate) fn begin(context: &Context<'_>, tool: &Tool<'_>, text: &str) -> Option<Reply> {
    let (id_name, list) = lister(&context.toolbox, tool)?;
    let wish = Wish::read(context, tool, text);
    let needs_time =
        tool.properties().any(|(name, schema)| tool.requires(name) && Kind::of(name, schema) == Kind::Start);
    if needs_time && wish.target.is_none() {
        return Some(Reply::say("Please tell me the day and the time that it shall be moved to."));
    }
    let is_described = !wish.words(tool).is_empty() || !wish.thing.when.used.is_empty();
    if wish.points_back() && !is_described {
        return Some(match known(context, id_name, tool.name) {
            Some(item) => change(context, tool, id_name, &item, wish.target.as_ref()),
            None => {
                Reply::say(format!("{WHICH_ONE} Please tell me which, by its day, its time or its title."))
            }
        });
    }
    Some(Reply::call(list.name, days(context, list, &wish.thing.when, LIST_DAYS)?.into()))
}

/// The range of a tool that lists: the days that were said, or those that come next.
pub(crate) fn listed(context: &Context<'_>, tool: &Tool<'_>, text: &str) -> Option<Map<String, Value>> {
    let is_list = context
        .toolbox
        .tools
        .iter()
        .any(|it| lister(&context.toolbox, it).is_some_and(|(_, list)| list.name == tool.name));
    let when = ParsedMessage::new(text, &context.now).when;
    let is_exact = when.time.is_some() || when.moment.is_some() || when.part.is_some();
    is_list.then(|| days(context, tool, &when, DEFAULT_LIST_DAYS)).flatten().filter(|_| !is_exact)
}

pub(crate) fn has_day(context: &Context<'_>, text: &str) -> bool {
    ParsedMessage::new(text, &context.now).when.date.is_some()
}

fn days(context: &Context<'_>, list: &Tool<'_>, when: &When, ahead: i64) -> Option<Map<String, Value>> {
    let (start, end) = range(context, when, ahead)?;
    let mut arguments = Map::new();
    for (name, schema) in list.properties() {
        let moment = match Kind::of(name, schema) {
            Kind::Start | Kind::FirstDay => &start,
            Kind::End | Kind::LastDay => &end,
            _ => continue,
        };
        arguments.insert(name.to_owned(), moment.strftime(RFC_3339).to_string().into());
    }
    Some(arguments)
}

fn range(context: &Context<'_>, when: &When, ahead: i64) -> Option<(Zoned, Zoned)> {
    let midnight = |date: jiff::civil::Date| context.now.at(date, jiff::civil::Time::midnight());
    if let Some(date) = when.date {
        return Some((midnight(date)?, midnight(when.until.unwrap_or(date).tomorrow().ok()?)?));
    }
    let now = context.now.moment()?;
    let end = now.checked_add(jiff::SignedDuration::from_hours(24 * ahead)).ok()?;
    Some((now, end))
}

/// The thing that this conversation was about last, unless the same was done to it already.
fn known<'a>(context: &Context<'a>, id_name: &str, tool: &str) -> Option<Item<'a>> {
    let results = context.earlier.iter().rev().take(6).flat_map(|message| message.results.iter().rev());
    let result =
        results.filter(|it| it.data().is_some_and(|data| data.get(id_name).is_some())).take(1).next()?;
    Item::read(context, result.data()?, id_name).filter(|_| result.name != tool || !tool.contains("cancel"))
}

/// Goes on with the list that `begin` asked for.
pub(crate) fn continue_with(
    context: &Context<'_>,
    tool: &Tool<'_>,
    text: &str,
    list: &CallOutcome<'_>,
) -> Option<Reply> {
    let (id_name, lister) = lister(&context.toolbox, tool)?;
    let data = list.data().filter(|_| list.name == lister.name)?;
    let wish = Wish::read(context, tool, text);
    let all = items(context, data, id_name);
    let fitting = fitting(&wish, tool, &all);
    Some(match fitting.as_slice() {
        [one] => change(context, tool, id_name, one, wish.target.as_ref()),
        [] if all.is_empty() => Reply::say("I find no booking of yours there, so nothing was changed."),
        [] => Reply::say(format!(
            "I find none that fits, so nothing was changed. There is {}.",
            named(&all.iter().collect::<Vec<_>>())
        )),
        several => Reply::say(format!("{WHICH_ONE} There is {}.", named(several))),
    })
}

fn items<'v>(context: &Context<'_>, data: &'v Value, id_name: &str) -> Vec<Item<'v>> {
    let lists = data.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_array());
    lists.flatten().filter_map(|it| Item::read(context, it, id_name)).collect()
}

fn fitting<'i, 'v>(wish: &Wish<'_>, tool: &Tool<'_>, all: &'i [Item<'v>]) -> Vec<&'i Item<'v>> {
    let is_then = |item: &&Item<'_>| match (wish.thing.when.time, &item.start) {
        (Some(time), Some(start)) => start.time() == time,
        _ => true,
    };
    let words = wish.words(tool);
    let hits = |item: &Item<'_>| words.iter().filter(|word| item.text.contains(word.as_str())).count();
    let then: Vec<&Item<'_>> = all.iter().filter(is_then).collect();
    let best = then.iter().map(|item| hits(item)).max().unwrap_or(0);
    if best == 0 && !words.is_empty() {
        return Vec::new();
    }
    then.into_iter().filter(|item| hits(item) == best).collect()
}

fn named(items: &[&Item<'_>]) -> String {
    let names: Vec<String> = items.iter().take(MAX_NAMED).map(|item| item.named()).collect();
    names.join("; ")
}

/// The call that changes it. The user approves it, with its title and time, before anything is done.
fn change(
    context: &Context<'_>,
    tool: &Tool<'_>,
    id_name: &str,
    item: &Item<'_>,
    target: Option<&When>,
) -> Reply {
    let mut arguments = Map::from_iter([(id_name.to_owned(), Value::from(item.id))]);
    if let (Some(target), Some(start), Some(end)) = (target, &item.start, &item.end) {
        let Some((start, end)) = moved(context, start, end, target) else {
            return Reply::say(missing::question(tool, &["start_time"], false));
        };
        set_times(tool, &mut arguments, &start, &end);
    }
    Reply::call(tool.name, arguments.into())
}

fn set_times(tool: &Tool<'_>, arguments: &mut Map<String, Value>, start: &Zoned, end: &Zoned) {
    for (name, schema) in tool.properties() {
        let moment = match Kind::of(name, schema) {
            Kind::Start => start,
            Kind::End => end,
            _ => continue,
        };
        arguments.insert(name.to_owned(), moment.strftime(RFC_3339).to_string().into());
    }
}

/// The new time: what was not said stays as it was, and so does the length.
fn moved(context: &Context<'_>, start: &Zoned, end: &Zoned, target: &When) -> Option<(Zoned, Zoned)> {
    let length = start.duration_until(end);
    let begin = match &target.moment {
        Some(moment) => moment.clone(),
        None => {
            let zone = target.zone.clone().unwrap_or_else(|| context.now.zone.clone());
            let local = start.with_time_zone(zone.clone());
            let date = target.date.unwrap_or_else(|| local.date());
            date.to_datetime(target.time.unwrap_or_else(|| local.time())).to_zoned(zone).ok()?
        }
    };
    let finish = target.finish(&context.now, &begin, length)?;
    Some((begin, finish))
}

/// The answer to something that was offered or asked in the turn before: a free time, one of several things, or the same
/// call at another time.
pub(crate) fn accept(context: &Context<'_>, request: impl Fn(&str) -> Option<String>) -> Option<Reply> {
    let before = context.earlier.last()?;
    let last = before.results.last()?;
    if before.answer.contains(WHICH_ONE) {
        return pick(context, &request(before.text)?, before.text, last);
    }
    take_offer(context, last).or_else(|| amend(context, last))
}

fn pick(context: &Context<'_>, tool: &str, text: &str, list: &CallOutcome<'_>) -> Option<Reply> {
    let tool = context.toolbox.find(tool)?;
    let (id_name, lister) = lister(&context.toolbox, tool)?;
    let data = list.data().filter(|_| list.name == lister.name)?;
    let (all, wish) = (items(context, data, id_name), Wish::read(context, tool, text));
    let several = fitting(&wish, tool, &all);
    let said = Wish { thing: ParsedMessage::new(context.message.text, &context.now), target: None };
    let is_then = |item: &&&Item<'_>| {
        let (when, words) = (&said.thing.when, said.words(tool));
        let start = item.start.as_ref();
        let fits_time = when.time.is_none_or(|time| start.is_some_and(|start| start.time() == time))
            && when.date.is_none_or(|date| start.is_some_and(|start| start.date() == date));
        fits_time
            && words.iter().any(|word| item.text.contains(word.as_str()))
                | (!when.used.is_empty() && words.is_empty())
    };
    let item = match ordinal(context.message.text) {
        Some(place) => several.get(place).copied(),
        None => match several.iter().filter(is_then).collect::<Vec<_>>().as_slice() {
            [one] => Some(**one),
            _ => None,
        },
    };
    Some(change(context, tool, id_name, item?, wish.target.as_ref()))
}

fn ordinal(text: &str) -> Option<usize> {
    const PLACES: [&[&str]; 3] = [&["first", "1", "1st"], &["second", "2", "2nd"], &["third", "3", "3rd"]];
    let said = phrase(text);
    let words: Vec<&str> = said.split(' ').collect();
    PLACES.iter().position(|names| names.iter().any(|name| words.contains(name))).filter(|_| words.len() <= 6)
}

/// One of the free times that a refused booking came with.
fn take_offer(context: &Context<'_>, refused: &CallOutcome<'_>) -> Option<Reply> {
    let Outcome::Failure(error) = refused.outcome else { return None };
    if error.kind != ErrorType::Conflict {
        return None;
    }
    let moment = |slot: &Value, name: &str| {
        Some(context.now.local(slot.get(name)?.as_str()?.parse::<Timestamp>().ok()?))
    };
    let offers = error.details.as_ref()?.get("nearest_free")?.as_array()?;
    let offers: Vec<(Zoned, Zoned)> =
        offers.iter().filter_map(|slot| Some((moment(slot, "start")?, moment(slot, "end")?))).collect();
    let said = phrase(context.message.text);
    if said.starts_with("no") {
        return None;
    }
    let when = ParsedMessage::new(context.message.text, &context.now).when;
    let fits = |(start, _): &(Zoned, Zoned)| {
        when.time == Some(start.time()) && when.date.is_none_or(|date| date == start.date())
    };
    let place = ordinal(context.message.text)
        .or_else(|| is_yes_or_no(context.message.text).then_some(0))
        .or_else(|| offers.iter().position(fits))?;
    let (start, end) = offers.get(place)?;
    let tool = context.toolbox.find(refused.name)?;
    let mut arguments = refused.arguments?.as_object()?.clone();
    set_times(tool, &mut arguments, start, end);
    Some(Reply::call(tool.name, arguments.into()))
}

/// “Actually make it 14:00”: the same again at another time, or a move where it has been done.
fn amend(context: &Context<'_>, last: &CallOutcome<'_>) -> Option<Reply> {
    let said = format!(" {} ", phrase(context.message.text));
    let cues = [" make it ", " actually ", " instead ", " rather ", " change it ", " sorry "];
    let when = ParsedMessage::new(context.message.text, &context.now).when;
    let has_time = when.time.is_some() || when.date.is_some() || when.moment.is_some();
    if !has_time || !cues.iter().any(|cue| said.contains(cue)) {
        return None;
    }
    let tool = context.toolbox.find(last.name).filter(|tool| tool.is_action())?;
    let given = last.arguments?.as_object()?;
    let times = |kind: Kind| {
        let (name, _) = tool.properties().find(|(name, schema)| Kind::of(name, schema) == kind)?;
        Some(context.now.local(given.get(name)?.as_str()?.parse::<Timestamp>().ok()?))
    };
    let (start, end) = moved(context, &times(Kind::Start)?, &times(Kind::End)?, &when)?;
    let Some(done) = last.data() else {
        let mut arguments = given.clone();
        set_times(tool, &mut arguments, &start, &end);
        return Some(Reply::call(tool.name, arguments.into()));
    };
    let moves = |it: &&Tool<'_>| {
        lister(&context.toolbox, it).is_some()
            && it.properties().any(|(name, schema)| Kind::of(name, schema) == Kind::Start)
    };
    let tool = context.toolbox.tools.iter().find(moves)?;
    let (id_name, _) = lister(&context.toolbox, tool)?;
    let mut arguments = Map::from_iter([(id_name.to_owned(), done.get(id_name)?.clone())]);
    set_times(tool, &mut arguments, &start, &end);
    Some(Reply::call(tool.name, arguments.into()))
}
