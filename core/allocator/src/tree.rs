//! The role tree: roles, frameworks in them, and which of them can be offered something.
//!
//! `booking` keeps the holdings of each of them, `ranking` their order, `quota` the guarantees and limits of roles. A
//! role is in the tree while it has child roles, frameworks, reservations or a quota. Fed by the allocator. Absent:
//! agents' resources, filters.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Mono, Rng};
use tepui_resources::{Name, Quantities, Resources, Role};

use crate::MinAllocatable;
use crate::bits::Bits;
use crate::claims::Claims;
use crate::constraints::Constraints;
use crate::marks::{ClientTraits, Marks, Traits};
use crate::options::Sorters;
use crate::order::{Key, Order};
use crate::share::Weight;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slab, Slot};
use crate::tally::{Clocks, Counted, Tally, Turns};

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Slab<NodeSlot, Node>,
    pub(crate) clients: Slab<ClientSlot, Client>,
    by_role: BTreeMap<Role, NodeSlot>,
    /// By framework: few, as it has few roles.
    of_framework: Vec<Vec<ClientSlot>>,
    pub(crate) root: NodeSlot,
    weights: BTreeMap<Role, Weight>,
    pub(crate) excluded: Excluded,
    /// What shares are fractions of.
    pub(crate) totals: Quantities,
    /// By agent: shared resources by holder. Each counts once.
    pub(crate) shared: Vec<Vec<(Counted, Resources)>>,
    /// Clients whose holdings changed since the order was settled.
    pub(crate) touched: Vec<ClientSlot>,
    /// Roles with new entries since the order was settled.
    pub(crate) joined: Vec<NodeSlot>,
    /// Every share must be computed again.
    pub(crate) stale: bool,
    /// Changes whenever a role comes or goes.
    pub(crate) roles_version: u64,
    /// Changes whenever the order, its entries, or an entry's possible offers do.
    pub(crate) version: u64,
    /// Clients that the run under way shows agents to that did not change, and the roles above them.
    pub(crate) fresh_clients: Bits<ClientSlot>,
    pub(crate) fresh_nodes: Bits<NodeSlot>,
    /// Clients with offer constraints.
    constrained: Bits<ClientSlot>,
    /// By client, and by role.
    client_traits: Vec<ClientTraits>,
    marks: Vec<Marks>,
    /// Free, unreserved and not revocable, on agents that can be offered: what guarantees can be met from.
    pub(crate) available: Quantities,
    /// Roles that quota kept something from and that may have more now.
    pub(crate) eased: Vec<NodeSlot>,
    /// A run is under way, from one call to the next.
    pub(crate) in_run: bool,
    pub(crate) sorters: Sorters,
    pub(crate) turns: Turns,
    pub(crate) rng: Rng,
}

/// Names that do not count for shares.
#[derive(Clone, Debug)]
pub(crate) struct Excluded {
    /// Of the five usual ones.
    pub(crate) usual: [bool; 5],
    names: Vec<Name>,
}

/// A role.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: Role,
    pub(crate) parent: Option<NodeSlot>,
    /// Child roles, clients, reservations, quota: without any, the node goes.
    uses: u32,
    pub(crate) weight: Weight,
    pub(crate) claims: Claims,
    /// Held by its own frameworks, and by all of its subtree.
    pub(crate) own: Tally,
    pub(crate) subtree: Tally,
    /// Clients in order in the subtree, and those of them that take revocable resources.
    pub(crate) active: u32,
    pub(crate) borrowers: u32,
    pub(crate) children: Order<Child>,
    pub(crate) clients: Order<ClientSlot>,
    pub(crate) key: Key,
    pub(crate) own_key: Key,
    pub(crate) clocks: Clocks,
}

/// What competes for the share of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Child {
    /// The role's own frameworks.
    Own,
    Role(NodeSlot),
}

/// A framework in one role: subscribed, or at least holding something there.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) framework: FrameworkSlot,
    pub(crate) node: NodeSlot,
    pub(crate) held: Tally,
    pub(crate) subscribed: bool,
    /// May be offered something: in the order.
    pub(crate) active: bool,
    pub(crate) terms: OfferTerms,
    pub(crate) last_offered: Option<Mono>,
    pub(crate) key: Key,
    pub(crate) touched: bool,
}

/// What a framework in a role can and will take.
#[derive(Clone, Debug, Default)]
pub(crate) struct OfferTerms {
    pub(crate) constraints: Option<Constraints>,
    pub(crate) min_allocatable: Option<MinAllocatable>,
}

impl Excluded {
    fn new(names: Vec<Name>) -> Self {
        Self { usual: Quantities::USUAL.map(|usual| names.contains(&usual)), names }
    }

    pub(crate) fn has(&self, name: &Name) -> bool {
        self.names.contains(name)
    }
}

impl Tree {
    pub(crate) fn new(sorters: Sorters, excluded: Vec<Name>, seed: u64) -> Self {
        let excluded = Excluded::new(excluded);
        let mut rng = Rng::seeded(seed);
        let mut nodes = Slab::new();
        let root = nodes.insert(Node::new(Role::new(""), None, Weight::ONE, &mut rng));
        Self {
            nodes,
            clients: Slab::new(),
            by_role: BTreeMap::new(),
            of_framework: Vec::new(),
            root,
            weights: BTreeMap::new(),
            excluded,
            totals: Quantities::new(),
            shared: Vec::new(),
            touched: Vec::new(),
            joined: Vec::new(),
            stale: false,
            roles_version: 0,
            version: 0,
            fresh_clients: Bits::new(),
            fresh_nodes: Bits::new(),
            constrained: Bits::new(),
            client_traits: Vec::new(),
            marks: [Marks::default()].into(),
            available: Quantities::new(),
            eased: Vec::new(),
            in_run: false,
            sorters,
            turns: Turns::Counted,
            rng,
        }
    }

    pub(crate) fn client(&self, framework: FrameworkSlot, role: &Role) -> Option<ClientSlot> {
        let clients = self.of_framework.get(framework.index())?;
        // Roles are mostly the very same text, which is quickly seen.
        clients.iter().copied().find(|client| self.role_of(*client) == role)
    }

    pub(crate) fn clients_of(&self, framework: FrameworkSlot) -> Vec<ClientSlot> {
        self.of_framework.get(framework.index()).cloned().unwrap_or_default()
    }

    pub(crate) fn role_of(&self, client: ClientSlot) -> &Role {
        &self.nodes[self.clients[client].node].role
    }

    pub(crate) fn ensure_client(&mut self, framework: FrameworkSlot, role: &Role) -> ClientSlot {
        if let Some(client) = self.client(framework, role) {
            return client;
        }
        let node = self.ensure_node(role);
        self.nodes[node].uses += 1;
        let client = self.clients.insert(Client::new(framework, node, &mut self.rng));
        let traits =
            ClientTraits { node, top: self.top_of(node), traits: Traits::default(), own_least: false };
        match self.client_traits.get_mut(client.index()) {
            Some(place) => *place = traits,
            None => self.client_traits.push(traits),
        }
        if framework.index() >= self.of_framework.len() {
            self.of_framework.resize_with(framework.index() + 1, Vec::new);
        }
        self.of_framework[framework.index()].push(client);
        client
    }

    /// Removes a client that is not subscribed and holds nothing, and roles that are unused then. True if it was
    /// removed.
    pub(crate) fn drop_if_unused(&mut self, slot: ClientSlot) -> bool {
        let client = &self.clients[slot];
        let unused = !client.subscribed && client.held.amount.is_empty();
        if unused {
            // Its role's place in the order must follow what it gave back.
            self.settle_order();
            self.set_active(slot, false);
            let client = self.clients.remove(slot);
            self.fresh_clients.remove(slot);
            self.constrained.remove(slot);
            self.of_framework[client.framework.index()].retain(|own| *own != slot);
            self.drop_use(client.node);
        }
        unused
    }

    pub(crate) fn add_use(&mut self, slot: NodeSlot) {
        self.nodes[slot].uses += 1;
    }

    pub(crate) fn drop_use(&mut self, slot: NodeSlot) {
        let node = &mut self.nodes[slot];
        node.uses -= 1;
        if node.uses == 0
            && let Some(parent) = node.parent
        {
            let node = self.nodes.remove(slot);
            self.marks[slot.index()] = Marks::default();
            self.by_role.remove(&node.role);
            self.roles_version += 1;
            self.eased.retain(|eased| *eased != slot);
            self.drop_use(parent);
        }
    }

    pub(crate) fn node(&self, role: &Role) -> Option<NodeSlot> {
        self.by_role.get(role).copied()
    }

    /// A node without uses: the caller adds one.
    pub(crate) fn ensure_node(&mut self, role: &Role) -> NodeSlot {
        if let Some(node) = self.by_role.get(role) {
            return *node;
        }
        let parent = role.ancestors().next().map(Role::from);
        let parent = parent.map_or(self.root, |parent| self.ensure_node(&parent));
        self.nodes[parent].uses += 1;
        let weight = self.weights.get(role).copied().unwrap_or(Weight::ONE);
        let node = self.nodes.insert(Node::new(role.clone(), Some(parent), weight, &mut self.rng));
        self.by_role.insert(role.clone(), node);
        self.roles_version += 1;
        self.marks.resize(self.marks.len().max(node.index() + 1), Marks::default());
        node
    }

    /// The topmost role above a role, or itself.
    pub(crate) fn top_of(&self, node: NodeSlot) -> NodeSlot {
        let mut at = node;
        while let Some(parent) = self.nodes[at].parent.filter(|parent| *parent != self.root) {
            at = parent;
        }
        at
    }

    pub(crate) fn is_top(&self, node: NodeSlot) -> bool {
        self.nodes[node].parent == Some(self.root)
    }

    pub(crate) fn marks(&self, node: NodeSlot) -> Marks {
        self.marks[node.index()]
    }

    pub(crate) fn all_marks(&self) -> &[Marks] {
        &self.marks
    }

    pub(crate) fn marks_mut(&mut self, node: NodeSlot) -> &mut Marks {
        &mut self.marks[node.index()]
    }

    pub(crate) fn client_traits(&self, client: ClientSlot) -> ClientTraits {
        self.client_traits[client.index()]
    }

    pub(crate) fn set_offer_terms(&mut self, client: ClientSlot, traits: Traits, terms: OfferTerms) {
        let active = self.clients[client].active;
        if active {
            self.count_borrower(client, false);
        }
        let known = &mut self.client_traits[client.index()];
        known.traits = traits;
        known.own_least = terms.min_allocatable.is_some();
        self.constrained.set(client, terms.constraints.is_some());
        self.clients[client].terms = terms;
        self.version += 1;
        if active {
            self.count_borrower(client, true);
        }
    }

    /// Whether any client has offer constraints.
    pub(crate) fn has_constraints(&self) -> bool {
        !self.constrained.is_empty()
    }

    /// The agent in this slot is another, or has changed so that constraints must be evaluated again.
    pub(crate) fn forget_judged(&mut self, agent: AgentSlot) {
        for client in self.constrained.iter() {
            if let Some(constraints) = &mut self.clients[client].terms.constraints {
                constraints.forget(agent);
            }
        }
    }

    /// Counts a client in order if it takes revocable resources, or counts it no more.
    fn count_borrower(&mut self, client: ClientSlot, counts: bool) {
        let ClientTraits { node, traits, .. } = self.client_traits(client);
        if traits.has_any(Traits::REVOCABLE) {
            self.each_above(node, |tree, at| match counts {
                true => tree.nodes[at].borrowers += 1,
                false => tree.nodes[at].borrowers -= 1,
            });
        }
    }

    /// How many could be lent what is reserved for this role: those outside of it.
    pub(crate) fn borrowers_from(&self, owner: NodeSlot) -> u32 {
        self.nodes[self.root].borrowers - self.nodes[owner].borrowers
    }

    /// Puts a client into the order, or takes it out.
    pub(crate) fn set_active(&mut self, slot: ClientSlot, active: bool) {
        if self.clients[slot].active == active {
            return;
        }
        if !active {
            // A leaving entry is found by its key.
            self.settle_order();
        }
        self.version += 1;
        self.count_borrower(slot, active);
        self.clients[slot].active = active;
        let (key, at) = (self.clients[slot].key, self.clients[slot].node);
        match active {
            true => self.insert_client(slot),
            false => self.nodes[at].clients.remove(key, slot),
        }
        let own_key = self.nodes[at].own_key;
        match (active, self.nodes[at].clients.len()) {
            (true, 1) => self.insert_child(at, Child::Own),
            (false, 0) => self.nodes[at].children.remove(own_key, Child::Own),
            (true | false, _) => (),
        }
        self.count_active(at, active);
    }

    fn count_active(&mut self, at: NodeSlot, active: bool) {
        let node = &mut self.nodes[at];
        node.active = if active { node.active + 1 } else { node.active - 1 };
        let (count, key) = (node.active, node.key);
        let Some(parent) = node.parent else { return };
        match (active, count) {
            (true, 1) => self.insert_child(parent, Child::Role(at)),
            (false, 0) => self.nodes[parent].children.remove(key, Child::Role(at)),
            (true | false, _) => (),
        }
        self.count_active(parent, active);
    }

    pub(crate) fn has_active_clients(&self) -> bool {
        self.nodes[self.root].active > 0
    }

    pub(crate) fn is_at_or_below(&self, node: NodeSlot, above: NodeSlot) -> bool {
        let mut next = Some(node);
        while let Some(at) = next {
            if at == above {
                return true;
            }
            next = self.nodes[at].parent;
        }
        false
    }

    /// The clients in order at or below a node.
    pub(crate) fn active_clients_below(&self, at: NodeSlot, out: &mut Vec<ClientSlot>) {
        let node = &self.nodes[at];
        out.extend(node.clients.iter().map(|(_, client)| client));
        for (_, child) in node.children.iter() {
            match child {
                Child::Own => (),
                Child::Role(role) => self.active_clients_below(role, out),
            }
        }
    }

    /// Begins a run in which agents that did not change are shown to these alone.
    pub(crate) fn set_fresh(&mut self, clients: Bits<ClientSlot>) {
        self.version += 1;
        self.fresh_nodes = Bits::new();
        for client in clients.iter() {
            let mut next = Some(self.clients[client].node);
            while let Some(at) = next.filter(|at| !self.fresh_nodes.contains(*at)) {
                self.fresh_nodes.insert(at);
                next = self.nodes[at].parent;
            }
        }
        self.fresh_clients = clients;
    }

    pub(crate) fn set_weights(&mut self, weights: &BTreeMap<Role, f64>) {
        for (role, weight) in weights {
            let weight = Weight::from_f64(*weight);
            self.weights.insert(role.clone(), weight);
            if let Some(node) = self.node(role) {
                self.nodes[node].weight = weight;
                self.stale = true;
            }
        }
    }

    pub(crate) fn change_totals(&mut self, less: &Quantities, more: &Quantities) {
        if less != more {
            self.totals += more;
            self.totals -= less;
            self.stale = true;
        }
    }
}

impl Node {
    fn new(role: Role, parent: Option<NodeSlot>, weight: Weight, rng: &mut Rng) -> Self {
        Self {
            role,
            parent,
            uses: 0,
            weight,
            claims: Claims::default(),
            own: Tally::default(),
            subtree: Tally::default(),
            active: 0,
            borrowers: 0,
            children: Order::default(),
            clients: Order::default(),
            key: Key::drawn(rng),
            own_key: Key::drawn(rng),
            clocks: Clocks::default(),
        }
    }
}

impl Client {
    fn new(framework: FrameworkSlot, node: NodeSlot, rng: &mut Rng) -> Self {
        Self {
            framework,
            node,
            held: Tally::default(),
            subscribed: false,
            active: false,
            terms: OfferTerms::default(),
            last_offered: None,
            key: Key::drawn(rng),
            touched: false,
        }
    }
}
